// Who gets in by a handshake, and who does not.
#include "transport/tcp/tcp_handshake.h"

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "main/fails.h"

namespace sluice {
namespace {

TcpIdentity Rank(int rank) { return {rank, 4, 99, "a secret"}; }

void ExpectDenied(const absl::Status& status, const std::string& why) {
  EXPECT_THAT(status, Fails(absl::StatusCode::kPermissionDenied, why));
}

// How far rank 0 and a caller come with each other.
absl::Status Meet(const TcpIdentity& caller, int dst, const TcpIdentity& listener) {
  const TcpHello hello = *MakeHello(caller, dst);
  if (absl::Status status = CheckHello(listener, hello); !status.ok()) return status;
  const TcpChallenge challenge = *MakeChallenge(listener, hello);
  if (absl::Status status = CheckChallenge(caller, hello, challenge); !status.ok()) return status;
  const TcpProof proof = *MakeProof(caller, hello, challenge);
  if (absl::Status status = CheckProof(listener, hello, challenge, proof); !status.ok()) {
    return status;
  }
  return CheckWelcome(MakeWelcome());
}

TEST(TcpHandshakeTest, RanksOfOneWorldMeet) {
  EXPECT_TRUE(Meet(Rank(1), 0, Rank(0)).ok());
  EXPECT_TRUE(Meet(Rank(0), 3, Rank(3)).ok());
}

TEST(TcpHandshakeTest, OthersDoNot) {
  TcpIdentity other = Rank(1);
  other.world = 98;
  ExpectDenied(Meet(other, 0, Rank(0)), "another world");
  ExpectDenied(Meet(Rank(1), 2, Rank(0)), "looks for rank 2");
  ExpectDenied(Meet(Rank(0), 0, Rank(0)), "no other rank 0");
  ExpectDenied(Meet(Rank(4), 0, Rank(0)), "no other rank 4");
  ExpectDenied(Meet(Rank(-1), 0, Rank(0)), "no other rank -1");
  other = Rank(1);
  other.secret = "another secret";
  ExpectDenied(Meet(other, 0, Rank(0)), "secret");
}

TEST(TcpHandshakeTest, NamesWhatSpeaksAnotherWay) {
  TcpHello hello = *MakeHello(Rank(1), 0);
  hello.version += 1;
  ExpectDenied(CheckHello(Rank(0), hello), "version 2");
  hello = *MakeHello(Rank(1), 0);
  hello.byte_order = __builtin_bswap32(hello.byte_order);
  ExpectDenied(CheckHello(Rank(0), hello), "byte order");
  hello.byte_order = 7;
  ExpectDenied(CheckHello(Rank(0), hello), "no rank of Sluice");
  hello = *MakeHello(Rank(1), 0);
  hello.magic[0] = 'G';
  ExpectDenied(CheckHello(Rank(0), hello), "no rank of Sluice");
  TcpWelcome welcome = MakeWelcome();
  welcome.magic[7] = ' ';
  ExpectDenied(CheckWelcome(welcome), "welcome");
}

// A listener's proof is none of a caller's, and that of one meeting is none of another's.
TEST(TcpHandshakeTest, ProofsCannotBeUsedAgain) {
  const TcpHello hello = *MakeHello(Rank(1), 0);
  const TcpChallenge challenge = *MakeChallenge(Rank(0), hello);
  ExpectDenied(CheckProof(Rank(0), hello, challenge, TcpProof{challenge.proof}), "secret");
  const TcpProof proof = *MakeProof(Rank(1), hello, challenge);
  EXPECT_TRUE(CheckProof(Rank(0), hello, challenge, proof).ok());
  const TcpChallenge later = *MakeChallenge(Rank(0), hello);
  ExpectDenied(CheckProof(Rank(0), hello, later, proof), "secret");
  const TcpHello again = *MakeHello(Rank(1), 0);
  ExpectDenied(CheckChallenge(Rank(1), again, challenge), "secret");
}

// Nobody else's name can be signed with one's own proof.
TEST(TcpHandshakeTest, ProofsNameTheirRank) {
  TcpHello hello = *MakeHello(Rank(1), 0);
  const TcpChallenge challenge = *MakeChallenge(Rank(0), hello);
  const TcpProof proof = *MakeProof(Rank(1), hello, challenge);
  hello.src = 2;
  ExpectDenied(CheckProof(Rank(0), hello, challenge, proof), "secret");
}

}  // namespace
}  // namespace sluice
