// Stands in for the header of the same name in ASTRA-sim: the interface that the test's driver and the shim need, in our own
// words. The real header replaces it in a build with ASTRA-sim.
#pragma once

#include <cstdint>

namespace AstraSim {

enum time_type_e { SE, MS, US, NS, FS };

struct timespec_t {
    time_type_e time_res;
    long double time_val;
};

struct sim_request;

class AstraNetworkAPI {
  public:
    explicit AstraNetworkAPI(int rank) : rank(rank) {}
    virtual ~AstraNetworkAPI() = default;
    virtual int sim_send(void* buffer, uint64_t count, int type, int dst, int tag, sim_request* request,
                         void (*handler)(void*), void* arg) = 0;
    virtual int sim_recv(void* buffer, uint64_t count, int type, int src, int tag, sim_request* request,
                         void (*handler)(void*), void* arg) = 0;
    virtual void sim_schedule(timespec_t delta, void (*handler)(void*), void* arg) = 0;
    virtual timespec_t sim_get_time() = 0;
    virtual void sim_notify_finished() {}

    int rank;
};

}  // namespace AstraSim
