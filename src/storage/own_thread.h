// Starts a thread of ours that leaves signals to the program's own threads.
#ifndef SLUICE_SRC_STORAGE_OWN_THREAD_H_
#define SLUICE_SRC_STORAGE_OWN_THREAD_H_

#include <functional>
#include <thread>

#include "absl/status/statusor.h"

namespace sluice {

// ResourceExhausted if the system has no more threads for us. `name`, of at most 15 bytes, is what
// the system's tools show; null: the program's.
absl::StatusOr<std::thread> StartOwnThread(std::function<void()> work, const char* name = nullptr);

}  // namespace sluice

#endif  // SLUICE_SRC_STORAGE_OWN_THREAD_H_
