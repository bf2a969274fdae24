// Drives the shim as ASTRA-sim's `Sys` does: a ring all-reduce, every chunk in two messages with one tag. Even ranks post a
// receive before the message arrives, odd ranks 60 us later, when it is there already. All calls come from handlers.
//
// Arguments: the scenario and the bytes of half a chunk. Prints the digest.

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "ropewalk_network.hh"

namespace {

int depth = 0;              // handlers that run now
long double clock_ns = 0;   // time of the last handler, of any rank

void require(bool holds, const char* rule) {
    if (holds) return;
    std::fprintf(stderr, "broken: %s\n", rule);
    std::exit(1);
}

class System {
  public:
    System(int rank, int ranks, uint64_t half) : network(rank), rank(rank), ranks(ranks), half(half) {}

    void fire() { schedule(0, &System::step_begins); }

    void check_end() const {
        require(step == steps(), "every rank goes through all steps");
        require(sent == 2 * steps(), "every message is reported as sent once");
        require(reported, "every rank reports its end");
    }

  private:
    RopewalkNetwork network;
    int rank, ranks;
    uint64_t half;
    int step = 0, received = 0, sent = 0;
    bool reported = false;

    // What a handler gets: the rank, the method, and for a receive its place among those of its tag.
    struct Call {
        System* system;
        void (System::*method)(int);
        int place;
    };
    static void handle(void* arg) {
        std::unique_ptr<Call> call(static_cast<Call*>(arg));
        require(++depth == 1, "no handler runs inside of another");
        const long double now = call->system->network.sim_get_time().time_val;
        require(now >= clock_ns, "all ranks share a clock that never goes back");
        clock_ns = now;
        (call->system->*call->method)(call->place);
        depth -= 1;
    }

    int steps() const { return 2 * (ranks - 1); }

    void schedule(long double ns, void (System::*method)(int)) {
        network.sim_schedule({AstraSim::NS, ns}, handle, new Call{this, method, 0});
    }

    void step_begins(int) {
        const int to = (rank + 1) % ranks;
        for (int i = 0; i < 2; i++)
            network.sim_send(nullptr, half, 0, to, step, nullptr, handle, new Call{this, &System::message_sent, i});
        received = 0;
        if (rank % 2 == 0) post_receives(0);
        else schedule(60000, &System::post_receives);
    }

    void post_receives(int) {
        const int from = (rank + ranks - 1) % ranks;
        for (int i = 0; i < 2; i++)
            network.sim_recv(nullptr, half, 0, from, step, nullptr, handle, new Call{this, &System::message_received, i});
    }

    void message_received(int place) {
        require(place == received, "receives of one tag end in their order");
        if (++received < 2) return;
        step += 1;
        if (step < steps()) step_begins(0);
        end_if_done();
    }

    void message_sent(int) {
        sent += 1;
        end_if_done();
    }

    void end_if_done() {
        if (step < steps() || sent < 2 * steps()) return;
        require(!reported, "a rank ends once");
        reported = true;
        network.sim_notify_finished();
    }
};

}  // namespace

int main(int argc, char** argv) {
    require(argc == 3, "two arguments");
    try {
        RopewalkNetwork::open(argv[1]);
        const int ranks = RopewalkNetwork::ranks();
        std::vector<std::unique_ptr<System>> systems;
        for (int rank = 0; rank < ranks; rank++)
            systems.push_back(std::make_unique<System>(rank, ranks, std::strtoull(argv[2], nullptr, 10)));
        for (auto& system : systems) system->fire();
        require(RopewalkNetwork::play(), "all ranks finish");
        for (auto& system : systems) system->check_end();
        std::printf("%s\n", RopewalkNetwork::finish().c_str());
        RopewalkNetwork::close();
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
