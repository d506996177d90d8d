// Named models of a network between simulated ranks: who shares which port, how fast ports are,
// what a message and a copy cost. A description only; flow_network.h makes bytes flow through it.
#ifndef SLUICE_SRC_SIM_NETWORK_MODEL_H_
#define SLUICE_SRC_SIM_NETWORK_MODEL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace sluice::sim {

// Simulated time, in picoseconds.
using TimePs = int64_t;

// Rates are bytes per second and direction, times are seconds.
struct NetworkModel {
  enum class Kind : uint8_t {
    kPorts,  // each rank has one port out and one in; nothing else is ever busy
    kNodes,  // the same among the ranks of a node; between nodes they share its NICs
  };

  std::string name = "ports";
  Kind kind = Kind::kPorts;
  double port_rate = 50e9;  // of a rank's port; in kNodes, of its links to its node's other ranks
  double latency = 5e-6;    // from when both sides are ready until bytes flow
  int ranks_per_node = 8;   // ranks [k n, k n + n) form a node; in kPorts for planning alone
  int nics_per_node = 8;    // kNodes: a node's n-th rank uses NIC n mod nics_per_node
  double nic_rate = 50e9;
  double nic_latency = 5e-6;  // as `latency`, between nodes
  // Packing, unpacking, adding: bytes of payload per second. A rank does one such copy at a time.
  double copy_rate = 1.2e12;
  double copy_latency = 3e-6;  // of each one
  // A rank copies by itself, as hosts do, and does nothing else meanwhile. Otherwise copies go on
  // beside it, as in a stream of a GPU.
  bool copies_block = false;
  // Ranks of a node fold: a receive reads several contributions where they lie and adds them up, as
  // over hosts' shared memory. GPUs and messages do not.
  bool folds = false;

  // "ports (50 GB/s per port, 5 us; copies 1200 GB/s, 3 us)"
  std::string Describe() const;
};

// A model by its name, as a starting point for other parameters:
//   `ports`  The defaults above.
//   `nodes`  Nodes of 8 ranks with links of 450 GB/s, and one NIC of 50 GB/s for all of them.
//   `h100`   8 x H100. NVLink 4 inside the node (900 GB/s per GPU, both directions together). A NIC
//            of 400 Gb/s for each GPU. Memory of 3.35 TB/s (NVIDIA's data sheets of H100 and DGX
//            H100). A copy reads and writes, at about 0.7 of this rate.
//   `gb200`  A rack of 72. NVLink 5 (1.8 TB/s per GPU), 400 Gb/s for each GPU, memory of 8 TB/s
//            (NVIDIA's data sheet of GB200 NVL72).
// Latencies are assumptions. NotFound lists the names.
absl::StatusOr<NetworkModel> NetworkModelNamed(absl::string_view name);
std::vector<std::string> NetworkModelNames();

// InvalidArgument names the parameter that is out of range.
absl::Status ValidateNetworkModel(const NetworkModel& model);

}  // namespace sluice::sim

#endif  // SLUICE_SRC_SIM_NETWORK_MODEL_H_
