// Ranks of one process, each with TCP links of its own over 127.0.0.1.
#ifndef SLUICE_TESTS_TRANSPORT_TCP_RANKS_H_
#define SLUICE_TESTS_TRANSPORT_TCP_RANKS_H_

#include <functional>
#include <memory>
#include <vector>

#include "sluice/fabric.h"
#include "transport/tcp/tcp_links.h"

namespace sluice {

// For rank `rank` of `size`, of the world that all of these are of.
TcpLinksOptions TcpTestOptions(int rank, int size);

// Links of all ranks, which know each other's addresses. `change` may change the options of each.
std::vector<std::shared_ptr<TcpLinks>> MakeTcpLinks(
    int size, const std::function<void(TcpLinksOptions*)>& change = nullptr);

// Connects each rank with each other one.
void ConnectAll(const std::vector<std::shared_ptr<TcpLinks>>& links);

// One fabric over each.
std::vector<std::unique_ptr<Fabric>> MakeTcpFabrics(
    const std::vector<std::shared_ptr<TcpLinks>>& links, int number = 0);

// Calls `progress` of all again and again until `done`. False after a minute.
bool PollAllUntil(const std::function<void()>& progress, const std::function<bool()>& done);

}  // namespace sluice

#endif  // SLUICE_TESTS_TRANSPORT_TCP_RANKS_H_
