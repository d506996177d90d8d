// A text of rank 0's, passed on to all others.
#ifndef SLUICE_SRC_SESSION_PEERS_SHARE_TEXT_H_
#define SLUICE_SRC_SESSION_PEERS_SHARE_TEXT_H_

#include <string>

#include "absl/status/status.h"
#include "session/peers/peers.h"
#include "sluice/transport.h"

namespace sluice {

// Passes rank 0's `text` on, with its length, over `transport`, which may be null for one rank
// alone. It may be long, and others have none, so that an exchange would carry mostly nothing.
// Collective. `call` names the call in messages. Errors poison.
absl::Status ShareText(Peers* peers, Transport* transport, std::string* text, const char* call);

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_PEERS_SHARE_TEXT_H_
