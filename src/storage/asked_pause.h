// The wish of a busy server: to be asked again later, and not before.
#ifndef SLUICE_SRC_STORAGE_ASKED_PAUSE_H_
#define SLUICE_SRC_STORAGE_ASKED_PAUSE_H_

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace sluice {

// `status` with the pause that the server asks for. Copies of it keep the pause.
absl::Status WithAskedPause(absl::Status status, absl::Duration pause);

// Zero: none was asked for.
absl::Duration AskedPauseOf(const absl::Status& status);

}  // namespace sluice

#endif  // SLUICE_SRC_STORAGE_ASKED_PAUSE_H_
