// Lines for whoever runs the job, about what this system lacks.
#ifndef SLUICE_SRC_TRANSPORT_SAY_ONCE_H_
#define SLUICE_SRC_TRANSPORT_SAY_ONCE_H_

#include "absl/strings/string_view.h"

namespace sluice {

// Writes "sluice: `text`" to stderr, as a line, unless this process has written it before.
// Thread: any.
void SayOnce(absl::string_view text);

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_SAY_ONCE_H_
