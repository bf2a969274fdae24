// ASTRA-sim over ropewalk: makes a network and a system per rank, and plays until all ranks have finished.
//
// Options are those of ASTRA-sim's other backends. --network-configuration is a ropewalk scenario, --set KEY=VALUE changes it,
// --logical-dims 8,2 gives ASTRA-sim's dimensions (one of all ranks without it), and --output DIR keeps ropewalk's results.
//
// SPDX-License-Identifier: MIT
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "astra-sim/common/Logging.hh"
#include "astra-sim/system/Sys.hh"
#include "remote_memory_backend/analytical/AnalyticalRemoteMemory.hh"
#include "ropewalk_network.hh"

namespace {

struct Options {
    std::map<std::string, std::string> values = {
        {"workload-configuration", ""},        {"system-configuration", ""},
        {"network-configuration", ""},         {"remote-memory-configuration", ""},
        {"comm-group-configuration", "empty"}, {"logging-configuration", "empty"},
        {"logging-folder", "log"},             {"num-queues-per-dim", "1"},
        {"comm-scale", "1"},                   {"injection-scale", "1"},
        {"rendezvous-protocol", "false"},      {"logical-dims", ""},
        {"output", ""},
    };
    std::vector<std::string> changes;

    Options(int argc, char** argv) {
        for (int i = 1; i < argc; i++) {
            std::string word = argv[i];
            const size_t equals = word.find('=');
            std::string key = word.substr(0, equals), value;
            if (key.rfind("--", 0) != 0) throw std::runtime_error("expected an option, found " + word);
            key.erase(0, 2);
            if (equals != std::string::npos) value = word.substr(equals + 1);
            else if (i + 1 < argc && std::string(argv[i + 1]).rfind("--", 0) != 0) value = argv[++i];
            else value = "true";
            if (key == "set") changes.push_back(value);
            else if (values.count(key)) values[key] = value;
            else throw std::runtime_error("unknown option --" + key);
        }
        for (const char* key : {"workload-configuration", "system-configuration", "network-configuration",
                                "remote-memory-configuration"})
            if (values[key].empty()) throw std::runtime_error(std::string("--") + key + " is missing");
    }

    std::vector<int> dimensions(int ranks) const {
        std::vector<int> dims;
        std::stringstream text(values.at("logical-dims"));
        long long product = 1;
        for (std::string dim; std::getline(text, dim, ','); product *= dims.back()) dims.push_back(std::stoi(dim));
        if (dims.empty()) return {ranks};
        if (product != ranks)
            throw std::runtime_error("--logical-dims has " + std::to_string(product) + " ranks, the scenario has " +
                                     std::to_string(ranks));
        return dims;
    }
};

int simulate(const Options& options) {
    auto value = [&](const char* key) { return options.values.at(key); };
    AstraSim::LoggerFactory::init(value("logging-configuration"), value("logging-folder"));
    RopewalkNetwork::open(value("network-configuration"), options.changes);
    const int ranks = RopewalkNetwork::ranks();
    const std::vector<int> dims = options.dimensions(ranks);
    const std::vector<int> queues(dims.size(), std::stoi(value("num-queues-per-dim")));

    Analytical::AnalyticalRemoteMemory memory(value("remote-memory-configuration"));
    std::vector<std::unique_ptr<RopewalkNetwork>> networks;
    std::vector<std::unique_ptr<AstraSim::Sys>> systems;
    for (int rank = 0; rank < ranks; rank++) {
        networks.push_back(std::make_unique<RopewalkNetwork>(rank));
        systems.push_back(std::make_unique<AstraSim::Sys>(
            rank, value("workload-configuration"), value("comm-group-configuration"), value("system-configuration"),
            &memory, networks.back().get(), dims, queues, std::stod(value("injection-scale")),
            std::stod(value("comm-scale")), value("rendezvous-protocol") == "true"));
    }
    for (auto& system : systems) system->workload->fire();
    const bool complete = RopewalkNetwork::play();
    const std::string digest = RopewalkNetwork::finish(value("output"));
    std::printf("ropewalk: digest %s\n", digest.c_str());
    systems.clear();
    RopewalkNetwork::close();
    AstraSim::LoggerFactory::shutdown();
    if (!complete) std::fprintf(stderr, "error: no event is left, but not all ranks have finished\n");
    return complete ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        return simulate(Options(argc, argv));
    } catch (const std::exception& error) {
        std::fprintf(stderr, "error: %s\n", error.what());
        return 1;
    }
}
