// A fabric over TCP links: records by a tree, posts and payload by the connections between ranks.
#ifndef SLUICE_SRC_TRANSPORT_TCP_TCP_FABRIC_H_
#define SLUICE_SRC_TRANSPORT_TCP_TCP_FABRIC_H_

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "sluice/fabric.h"
#include "transport/near_records.h"
#include "transport/tcp/tcp_links.h"

namespace sluice {

struct TcpFabricOptions {
  // Makes its transports, of the numbers 0, 1, ... of this fabric. Null: TcpTransports. The
  // function itself ends after the links, when this rank's last words have left.
  std::function<absl::StatusOr<std::unique_ptr<Transport>>(int number)> open_transport;
  std::shared_ptr<TcpLinks> links;  // which know their peers
  std::vector<int> node_of_rank;    // as Fabric has them
  // Carries records and posts to the ranks that it reaches, in place of the links; or null.
  std::shared_ptr<NearRecords> near;
  // Which of several fabrics over the same links it is, equal on all ranks. 0 .. kMaxTcpFabrics - 1
  int number = 0;
  // The wire of the fabric's transports, for Fabric::DescribeWire.
  WireReport wire = {-1, -1, "tcp", "", "a fabric over TCP", ""};
  // Tells of further ranks that have ended; or null.
  std::function<absl::Status()> check_ranks;
};

// Each takes two kinds of control records: 2 * number and the next one. Others may use the rest.
inline constexpr int kMaxTcpFabrics = 16;
// TcpTransports of fabric n have numbers from n * kTcpFabricTransports on.
inline constexpr int kTcpFabricTransports = 1 << 20;

// InvalidArgument: there is no such fabric, or as many nodes as ranks there are not.
absl::StatusOr<std::unique_ptr<Fabric>> MakeTcpFabric(TcpFabricOptions options);

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_TCP_TCP_FABRIC_H_
