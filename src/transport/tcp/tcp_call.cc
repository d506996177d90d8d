// Connecting, and the caller's half of the handshake.
#include "transport/tcp/tcp_call.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace sluice {
namespace {

// Until the next address is called beside those that have not answered.
constexpr int64_t kStaggerNs = 100'000'000;
// So much longer where a host has taken a call: as a rule its process is busy.
constexpr int64_t kAnswerNs = 1'000'000'000;
// Between two rounds over all addresses.
constexpr int64_t kRoundNs = 200'000'000;
// A rank listens before others hear of its addresses. So who is refused so often comes too late.
constexpr int kRefusedRounds = 5;
// How often hosts are looked at that owe an answer.
constexpr int64_t kHostLookNs = 1'000'000'000;

}  // namespace

TcpCall::TcpCall(const TcpIdentity& identity, int dst, const std::vector<SocketAddress>& addresses,
                 int64_t timeout_ns, absl::Duration silence)
    : identity_(identity),
      dst_(dst),
      addresses_(addresses),
      timeout_ns_(timeout_ns),
      silence_(silence),
      failures_(addresses.size()) {
  lines_.reserve(addresses.size());
}

TcpCall::State TcpCall::Progress(int64_t now_ns) {
  if (since_ns_ == 0) since_ns_ = next_dial_ns_ = now_ns;
  Dial(now_ns);
  for (size_t i = 0; i < lines_.size();) {
    const bool had_proved = proved_;
    if (!Advance(lines_[i])) {
      lines_.erase(lines_.begin() + static_cast<std::ptrdiff_t>(i));
      continue;
    }
    if (taken_.is_open()) return State::kAnswered;
    if (proved_ && !had_proved) {  // the right one: the others hang up
      std::swap(lines_[0], lines_[i]);
      lines_.erase(lines_.begin() + 1, lines_.end());
      i = 0;
    }
    ++i;
  }
  if (now_ns - looked_for_silence_ns_ > kHostLookNs) {
    looked_for_silence_ns_ = now_ns;
    DropSilent();
  }
  if (!lines_.empty() && AnyConnected()) return State::kCalls;
  if (now_ns - since_ns_ > timeout_ns_) return State::kFailed;
  if (!lines_.empty() || next_ < addresses_.size()) return State::kCalls;
  // This round is over.
  ++round_;
  if (refused_ && !doubtful_ && round_ >= kRefusedRounds) return State::kFailed;
  refused_ = doubtful_ = false;
  next_ = 0;
  next_dial_ns_ = now_ns + kRoundNs;
  return State::kCalls;
}

void TcpCall::DropSilent() {
  std::erase_if(lines_, [this](const Line& line) {
    if (!line.connected || !IsSilent(line.fd.get(), silence_)) return false;
    doubtful_ = true;
    proved_ = false;  // of this line, if of any
    Note(*line.address, "its host gives no sign");
    return true;
  });
}

bool TcpCall::AnyConnected() const {
  return std::any_of(lines_.begin(), lines_.end(), [](const Line& line) { return line.connected; });
}

void TcpCall::Dial(int64_t now_ns) {
  const int64_t answer_ns = AnyConnected() ? kAnswerNs : 0;
  while (!proved_ && next_ < addresses_.size() && now_ns >= next_dial_ns_ + answer_ns) {
    const bool under_way = StartLine(addresses_[next_++]);
    if (under_way) next_dial_ns_ = now_ns + kStaggerNs;
  }
}

bool TcpCall::StartLine(const SocketAddress& address) {
  const char* call = nullptr;
  Fd fd = ConnectTo(address, &call);
  if (!fd.is_open()) {
    Note(address, SocketErrorText(call, address, errno));
    return false;
  }
  Line& line = lines_.emplace_back();
  line.fd = std::move(fd);
  PrepareConnection(line.fd.get(), silence_);
  line.address = &address;
  return true;
}

bool TcpCall::Advance(Line& line) {
  if (line.connected) return Hear(line);
  const int error = ConnectOutcome(line.fd.get());
  if (error == EINPROGRESS) return true;
  if (error != 0) {
    refused_ = refused_ || error == ECONNREFUSED;
    doubtful_ = doubtful_ || error == ETIMEDOUT;
    next_dial_ns_ = 0;  // the next one at once
    return Fail(line, ErrnoText(error));
  }
  line.connected = true;
  const absl::StatusOr<TcpHello> hello = MakeHello(identity_, dst_);
  if (!hello.ok()) return Fail(line, std::string(hello.status().message()));
  line.hello = *hello;
  if (WriteSocket(line.fd.get(), &line.hello, sizeof(line.hello)) != sizeof(line.hello)) {
    return Fail(line, "it takes no hello");
  }
  return Hear(line);
}

bool TcpCall::Hear(Line& line) {
  while (true) {
    const size_t wanted = proved_ ? sizeof(TcpWelcome) : sizeof(TcpChallenge);
    const ssize_t count =
        ReadSocket(line.fd.get(), line.read.data() + line.bytes, wanted - line.bytes);
    if (count < 0 && errno == EAGAIN) return true;
    if (count <= 0) {
      doubtful_ = true;
      proved_ = false;  // of this line, if of any
      return Fail(line, count == 0 ? "who listens there hung up" : ErrnoText(errno));
    }
    line.bytes += static_cast<size_t>(count);
    if (line.bytes < wanted) continue;
    line.bytes = 0;
    if (!proved_) {
      TcpChallenge challenge;
      std::memcpy(&challenge, line.read.data(), sizeof(challenge));
      if (!Answer(line, challenge)) return false;
      continue;
    }
    TcpWelcome welcome;
    std::memcpy(&welcome, line.read.data(), sizeof(welcome));
    if (absl::Status status = CheckWelcome(welcome); !status.ok()) {
      proved_ = false;
      return Fail(line, std::string(status.message()));
    }
    taken_ = std::move(line.fd);
    return true;
  }
}

bool TcpCall::Answer(Line& line, const TcpChallenge& challenge) {
  absl::Status status = CheckChallenge(identity_, line.hello, challenge);
  if (!status.ok()) {
    doubtful_ = true;
    return Fail(line, std::string(status.message()));
  }
  const absl::StatusOr<TcpProof> proof = MakeProof(identity_, line.hello, challenge);
  if (!proof.ok()) return Fail(line, std::string(proof.status().message()));
  if (WriteSocket(line.fd.get(), &*proof, sizeof(*proof)) != sizeof(*proof)) {
    return Fail(line, "it takes no proof");
  }
  proved_ = true;
  return true;
}

bool TcpCall::Fail(const Line& line, const std::string& why) {
  Note(*line.address, why);
  return false;
}

void TcpCall::Note(const SocketAddress& address, const std::string& why) {
  failures_[static_cast<size_t>(&address - addresses_.data())] = why;
}

std::string TcpCall::failures() const {
  std::vector<std::string> texts;
  for (size_t i = 0; i < failures_.size(); ++i) {
    texts.push_back(absl::StrCat(addresses_[i].Text(), ": ",
                                 failures_[i].empty() ? "no answer" : failures_[i]));
  }
  return absl::StrJoin(texts, ", ");
}

}  // namespace sluice
