// A text of rank 0's, passed on to all others.
#ifndef SLUICE_SRC_SESSION_PEERS_SHARE_TEXT_H_
#define SLUICE_SRC_SESSION_PEERS_SHARE_TEXT_H_

#include <string>

#include "absl/status/status.h"
#include "session/peers/peers.h"
#include "sluice/transport.h"

namespace sluice {

// Passes rank 0's `text` on over `transport`, with its length. Collective. `call` names the call in
// messages. Errors poison.
absl::Status PassText(Peers* peers, Transport* transport, std::string* text, const char* call);

// The same after an agreement: `own` is how this rank came to its part. A null `transport` passes
// nothing on.
absl::Status ShareText(Peers* peers, const absl::Status& own, Transport* transport,
                       std::string* text, const char* call);

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_PEERS_SHARE_TEXT_H_
