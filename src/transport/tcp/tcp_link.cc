// Reading and writing frames, payload straight into and from where it lies.
#include "transport/tcp/tcp_link.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace sluice {
namespace {

// Headers, and what comes with them of payload, are read into the buffer and copied from there. So
// are short rows.
constexpr size_t kBufferBytes = size_t{64} << 10;
constexpr size_t kAheadBytes = size_t{8} << 10;
constexpr size_t kPiecesMax = 256;
// Most bytes of one call: so long the other direction waits.
constexpr size_t kReadBytes = size_t{128} << 10;
constexpr size_t kWriteBytes = size_t{1} << 20;

}  // namespace

void TcpLink::Open(Fd fd) {
  fd_ = std::move(fd);
  if (buffer_ == nullptr) buffer_.reset(new std::byte[kBufferBytes]);
  readable_ = writable_ = true;  // what came before is not told again
}

void TcpLink::Close() {
  fd_.Close();
  readable_ = writable_ = false;
}

void TcpLink::Clear() {
  for (Outgoing& each : ring_) each = Outgoing();
  first_ = count_ = header_written_ = 0;
  in_payload_ = false;
  begin_ = end_ = 0;
}

TcpLink::Outgoing& TcpLink::Add(const TcpFrame& frame) {
  if (count_ == ring_.size()) {
    std::vector<Outgoing> larger(std::max<size_t>(64, 2 * ring_.size()));
    for (size_t n = 0; n < count_; ++n) larger[n] = std::move(At(n));
    ring_ = std::move(larger);
    first_ = 0;
  }
  Outgoing& added = At(count_);
  ++count_;
  ++queued_;
  added.frame = frame;
  added.rows = TcpRows();
  added.borrows = false;
  return added;
}

void TcpLink::QueueBorrowed(const TcpFrame& frame, const TcpRows& rows, uint32_t owner) {
  Outgoing& added = Add(frame);
  added.rows = rows;
  added.owner = owner;
  added.borrows = true;
}

void TcpLink::QueueOwned(const TcpFrame& frame, std::vector<std::byte> bytes) {
  Outgoing& added = Add(frame);
  added.owned = std::move(bytes);
  added.rows.data = added.owned.data();
  added.rows.bytes = added.owned.size();
}

void TcpLink::Recall(uint32_t transport, int64_t owner) {
  for (size_t n = 0; n < count_; ++n) {
    Outgoing& each = At(n);
    if (!each.borrows || each.frame.transport != transport) continue;
    if (owner >= 0 && each.owner != static_cast<uint32_t>(owner)) continue;
    each.borrows = false;
    if (n > 0 || header_written_ == 0) {
      each.frame = TcpFrame();
      each.frame.kind = TcpFrameKind::kNothing;
      each.rows = TcpRows();
      continue;
    }
    const size_t left = each.rows.left();
    each.owned.resize(left);
    each.rows.Give(each.owned.data(), left);
    each.rows = TcpRows();
    each.rows.data = each.owned.data();
    each.rows.bytes = left;
  }
}

void TcpLink::Notify(bool readable, bool writable, bool ended) {
  readable_ = readable_ || readable || ended;
  writable_ = writable_ || (writable && !write_failed_);
  hung_up_ = hung_up_ || ended;
}

// The pieces that one call of the system writes.
struct TcpLink::Pieces {
  std::array<iovec, kPiecesMax> all;
  int count = 0;
  size_t bytes = 0;

  int room() const { return static_cast<int>(kPiecesMax) - count; }
  iovec* end() { return &all[static_cast<size_t>(count)]; }
  void Add(void* data, size_t length) {
    *end() = {data, length};
    ++count;
    bytes += length;
  }
};

void TcpLink::Gather(size_t most, Pieces* pieces) {
  size_t packed = 0;
  for (size_t n = 0; n < count_ && pieces->bytes < most && pieces->room() >= 2; ++n) {
    Outgoing& each = At(n);
    const size_t skipped = n == 0 ? header_written_ : 0;
    if (skipped < sizeof(TcpFrame)) {
      pieces->Add(reinterpret_cast<std::byte*>(&each.frame) + skipped, sizeof(TcpFrame) - skipped);
    }
    size_t taken = 0;
    if (each.rows.are_short()) {
      if (packed_ == nullptr) packed_.reset(new std::byte[kBufferBytes]);
      taken = std::min(each.rows.left(), kBufferBytes - packed);
      TcpRows rows = each.rows;  // which go on only when they are written
      rows.Give(packed_.get() + packed, taken);
      if (taken > 0) pieces->Add(packed_.get() + packed, taken);
      packed += taken;
    } else {
      pieces->count += each.rows.Pieces(pieces->end(), pieces->room(), each.rows.left(), &taken);
      pieces->bytes += taken;
    }
    if (taken < each.rows.left()) return;
  }
}

void TcpLink::Write() {
  size_t room = kWriteBytes;
  while (writable_ && !ended_) {
    user_->Refill(*this);
    if (count_ == 0 || room == 0) return;
    Pieces pieces;
    Gather(room, &pieces);
    msghdr message = {};
    message.msg_iov = pieces.all.data();
    message.msg_iovlen = static_cast<size_t>(pieces.count);
    const ssize_t count = sendmsg(fd_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return FailToWrite(errno);
    Written(static_cast<size_t>(count));
    // The rest had no room; there will be a word once there is some.
    if (static_cast<size_t>(count) < pieces.bytes) writable_ = false;
    room -= std::min(room, static_cast<size_t>(count));
  }
}

void TcpLink::FailToWrite(int error) {
  writable_ = false;
  if (error == EAGAIN || error == EWOULDBLOCK) return;
  // The other rank may have said farewell before.
  write_failed_ = readable_ = true;
  why_ = ErrnoText(error);
}

void TcpLink::Written(size_t bytes) {
  while (count_ > 0) {
    Outgoing& first = At(0);
    const size_t header = std::min(bytes, sizeof(TcpFrame) - header_written_);
    header_written_ += header;
    bytes -= header;
    const size_t payload = std::min(bytes, first.rows.left());
    first.rows.at += payload;
    bytes -= payload;
    if (header_written_ < sizeof(TcpFrame) || first.rows.left() > 0) return;
    EndFirst();
  }
}

void TcpLink::EndFirst() {
  Outgoing& first = At(0);
  const TcpFrame frame = first.frame;
  const uint32_t owner = first.owner;
  const bool borrows = first.borrows;
  if (!first.owned.empty()) first.owned = std::vector<std::byte>();
  first_ = (first_ + 1) & (ring_.size() - 1);
  --count_;
  header_written_ = 0;
  if (borrows) user_->OnSent(*this, frame, owner);
}

ssize_t TcpLink::ReadSome(size_t* wanted) {
  if (!in_payload_ || rows_.data == nullptr || rows_.are_short()) {
    *wanted = (in_payload_ ? kBufferBytes : kAheadBytes) - end_;
    const ssize_t count = ReadSocket(fd_.get(), buffer_.get() + end_, *wanted);
    if (count > 0) end_ += static_cast<size_t>(count);
    return count;
  }
  std::array<iovec, kPiecesMax> pieces;
  size_t payload = 0;
  int used = rows_.Pieces(pieces.data(), static_cast<int>(kPiecesMax) - 1, rows_.left(), &payload);
  *wanted = payload;
  if (payload == rows_.left()) {  // and what comes next
    pieces[static_cast<size_t>(used++)] = {buffer_.get(), kAheadBytes};
    *wanted += kAheadBytes;
  }
  ssize_t count;
  do {
    count = readv(fd_.get(), pieces.data(), used);
  } while (count < 0 && errno == EINTR);
  if (count <= 0) return count;
  const size_t taken = std::min(static_cast<size_t>(count), payload);
  rows_.at += taken;
  end_ = static_cast<size_t>(count) - taken;
  return count;
}

void TcpLink::Read() {
  size_t room = kReadBytes;
  while (readable_ && !ended_ && room > 0) {
    size_t wanted = 0;
    const ssize_t count = ReadSome(&wanted);
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      readable_ = false;
      if (write_failed_) End(why_);
      return;
    }
    if (count < 0) return End(ErrnoText(errno));
    if (count == 0)
      return End("it was closed without a farewell, and the rank's own output may say why");
    // Whatever comes later is told, but an end that came before is not.
    if (static_cast<size_t>(count) < wanted && !hung_up_ && !write_failed_) readable_ = false;
    room -= std::min(room, static_cast<size_t>(count));
    if (!Parse()) return;
  }
}

bool TcpLink::Parse() {
  while (true) {
    if (in_payload_) {
      if (!TakePayload(end_ - begin_)) return false;
      if (in_payload_) break;
      continue;
    }
    if (end_ - begin_ < sizeof(TcpFrame)) break;
    if (!TakeHeader()) return false;
  }
  // The rest is less than a header.
  if (begin_ > 0 && end_ > begin_)
    std::memmove(buffer_.get(), buffer_.get() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  return true;
}

bool TcpLink::TakePayload(size_t available) {
  const size_t count = std::min(available, rows_.left());
  if (rows_.data == nullptr) {
    rows_.at += count;
  } else {
    rows_.Take(buffer_.get() + begin_, count);
  }
  begin_ += count;
  return rows_.left() > 0 || EndPayload();
}

bool TcpLink::EndPayload() {
  in_payload_ = false;
  const TcpFrame frame = incoming_;
  if (absl::Status status = user_->OnPayload(*this, frame); !status.ok()) {
    End(std::string(status.message()));
  }
  return !ended_;
}

bool TcpLink::TakeHeader() {
  std::memcpy(&incoming_, buffer_.get() + begin_, sizeof(TcpFrame));
  begin_ += sizeof(TcpFrame);
  rows_ = TcpRows();
  rows_.bytes = incoming_.length;
  if (absl::Status status = user_->OnFrame(*this, incoming_, &rows_); !status.ok()) {
    End(std::string(status.message()));
    return false;
  }
  in_payload_ = true;
  return rows_.left() > 0 || EndPayload();
}

void TcpLink::End(std::string why) {
  ended_ = true;
  why_ = std::move(why);
}

}  // namespace sluice
