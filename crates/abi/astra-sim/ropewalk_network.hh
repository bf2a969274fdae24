// ropewalk as the network of ASTRA-sim: every message goes through ropewalk's fabric packet by packet.
//
// ASTRA-sim makes one object per rank. All of them share the run, the clock and the tables of messages, because ASTRA-sim has
// one global state and calls them from one thread.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstdint>
#include <deque>
#include <map>
#include <stdexcept>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "astra-sim/common/AstraNetworkAPI.hh"
#include "ropewalk.h"

class RopewalkNetwork : public AstraSim::AstraNetworkAPI {
  public:
    using Handler = void (*)(void*);

    // Opens the scenario that all ranks use: a path or the name of a built-in one, and changes "KEY=VALUE".
    static void open(const std::string& scenario, const std::vector<std::string>& changes = {}) {
        std::vector<const char*> list;
        for (const auto& change : changes) list.push_back(change.c_str());
        list.push_back(nullptr);
        std::vector<char> error(1 << 14);
        shared() = Shared{};
        shared().run = rw_open(scenario.c_str(), list.data(), error.data(), error.size());
        if (!shared().run) throw std::runtime_error(error.data());
    }

    static int ranks() { return static_cast<int>(rw_ranks(shared().run)); }

    // Plays until all ranks have reported their end, or no event is left. Returns true if all ranks have.
    static bool play() {
        Shared& all = shared();
        rw_event event;
        while (all.finished < ranks()) {
            const int next = rw_next(all.run, RW_NEVER, &event);
            if (next == RW_ERROR) fail();
            if (next != RW_EVENT) return false;
            hand_out(event);
        }
        return true;
    }

    // Plays all messages to their end, writes the results unless `directory` is empty, and returns the digest.
    static std::string finish(const std::string& directory = "") {
        if (rw_finish(shared().run, directory.empty() ? nullptr : directory.c_str()) != 0) fail();
        return rw_digest(shared().run);
    }

    static void close() {
        rw_close(shared().run);
        shared() = Shared{};
    }

    explicit RopewalkNetwork(int rank) : AstraNetworkAPI(rank) {}

    int sim_send(void*, uint64_t count, int, int dst, int tag, AstraSim::sim_request*, Handler handler,
                 void* arg) override {
        Shared& all = shared();
        const uint64_t id = all.fresh++;
        all.messages[id] = Message{Call{handler, arg}, Key{tag, rank, dst}, 2};
        check(rw_send(all.run, id, static_cast<uint32_t>(rank), static_cast<uint32_t>(dst), count,
                      static_cast<uint32_t>(tag)));
        return 0;
    }

    // The first message of (tag, source, destination) meets the first receive. If the message is there already, the handler
    // runs after all else that happens now: a handler never runs inside of another.
    int sim_recv(void*, uint64_t, int, int src, int tag, AstraSim::sim_request*, Handler handler, void* arg) override {
        Meeting& meeting = shared().meetings[Key{tag, src, rank}];
        if (meeting.arrived > 0) {
            meeting.arrived -= 1;
            later(0, Call{handler, arg});
        } else {
            meeting.waiting.push_back(Call{handler, arg});
        }
        return 0;
    }

    void sim_schedule(AstraSim::timespec_t delta, Handler handler, void* arg) override {
        later(static_cast<uint64_t>(std::llround(delta.time_val * unit_ps(delta.time_res))), Call{handler, arg});
    }

    // ASTRA-sim counts whole nanoseconds; the fraction is exact here and is cut off there.
    AstraSim::timespec_t sim_get_time() override {
        return AstraSim::timespec_t{AstraSim::NS, rw_now_ps(shared().run) / 1000.0L};
    }

    void sim_notify_finished() override { shared().finished += 1; }

  private:
    struct Call {
        Handler handler;
        void* arg;
    };
    using Key = std::tuple<int, int, int>;  // tag, source, destination
    struct Message {
        Call sent;
        Key key;
        int events_to_come;
    };
    // Either messages have arrived that no receive has met, or receives wait.
    struct Meeting {
        uint64_t arrived = 0;
        std::deque<Call> waiting;
    };
    struct Shared {
        rw_run* run = nullptr;
        uint64_t fresh = 0;
        int finished = 0;
        std::unordered_map<uint64_t, Message> messages;
        std::unordered_map<uint64_t, Call> timers;
        std::map<Key, Meeting> meetings;
    };

    static Shared& shared() {
        static Shared all;
        return all;
    }

    [[noreturn]] static void fail() { throw std::runtime_error(std::string("ropewalk: ") + rw_error(shared().run)); }
    static void check(int result) {
        if (result == RW_ERROR) fail();
    }

    // Picoseconds of a unit. ASTRA-sim's list has s, ms, us, ns and fs.
    static long double unit_ps(AstraSim::time_type_e unit) {
        switch (unit) {
        case AstraSim::SE: return 1e12L;
        case AstraSim::MS: return 1e9L;
        case AstraSim::US: return 1e6L;
        case AstraSim::NS: return 1e3L;
        default: return 1e-3L;
        }
    }

    void later(uint64_t after_ps, Call call) {
        Shared& all = shared();
        const uint64_t id = all.fresh++;
        all.timers[id] = call;
        check(rw_timer(all.run, id, static_cast<uint32_t>(rank), after_ps));
    }

    static void hand_out(const rw_event& event) {
        Shared& all = shared();
        Call call{nullptr, nullptr};
        if (event.kind == RW_TIMER) {
            auto timer = all.timers.find(event.id);
            call = timer->second;
            all.timers.erase(timer);
        } else {
            auto message = all.messages.find(event.id);
            if (event.kind == RW_SENT) {
                call = message->second.sent;
            } else {
                Meeting& meeting = all.meetings[message->second.key];
                if (meeting.waiting.empty()) {
                    meeting.arrived += 1;
                } else {
                    call = meeting.waiting.front();
                    meeting.waiting.pop_front();
                }
            }
            if (--message->second.events_to_come == 0) all.messages.erase(message);
        }
        if (call.handler) call.handler(call.arg);
    }
};
