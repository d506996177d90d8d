// Leases over nothing but the five calls of a store: a thread renews a key, and others see it stop.
#ifndef SLUICE_SRC_WORLD_STORE_BEAT_LEASE_H_
#define SLUICE_SRC_WORLD_STORE_BEAT_LEASE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "sluice/store.h"
#include "world/store/store_beats.h"

namespace sluice {

// As Store::Hold. The store and `beats`, what it has seen of others' beats, stay beyond the lease.
absl::StatusOr<std::unique_ptr<StoreLease>> HoldByBeats(Store& store, StoreBeats& beats,
                                                        absl::string_view key,
                                                        absl::string_view value,
                                                        absl::Duration lease);

}  // namespace sluice

#endif  // SLUICE_SRC_WORLD_STORE_BEAT_LEASE_H_
