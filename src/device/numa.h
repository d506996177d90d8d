// Places memory on machines with several NUMA nodes: near the CPUs that will touch it.
//
// The one file that knows hwloc.
#ifndef SLUICE_SRC_DEVICE_NUMA_H_
#define SLUICE_SRC_DEVICE_NUMA_H_

#include <cstddef>

namespace sluice {

// Asks for the pages of [data, data + bytes) to come from the NUMA nodes of the CPUs that this
// process is bound to now. Nobody has touched these pages yet. The pages come from other nodes
// where those are full.
//
// False, and nothing is asked for, where there is nothing to choose: one node, or a process that
// may run at all of them. False also where the system refuses, as some containers do. The memory is
// then as good as before. Looks the machine up once per process, at the first call. Thread: any.
bool PlaceNearProcess(std::byte* data, size_t bytes);

// The same with one node, by the system's number: that of a GPU, say. False also where there is no
// such node.
bool PlaceOnNode(std::byte* data, size_t bytes, int node);

// NUMA nodes of the machine, as far as this process is shown them; at least 1. Thread: any.
int NumaNodes();

}  // namespace sluice

#endif  // SLUICE_SRC_DEVICE_NUMA_H_
