// Buckets as non-blocking MPI messages.
#include "transport/mpi/mpi_transport.h"

#include <algorithm>
#include <utility>

#include "tensor/check.h"
#include "tensor/error_text.h"
#include "transport/mpi/mpi_error.h"
#include "transport/op_check.h"

namespace sluice {

namespace {

// Transfers have few kinds of rows. Types in use outlive their being freed.
constexpr size_t kTypesMax = 1024;

// A process that MPI says has ended is seen to by then, unless MPI alone has lost it.
constexpr absl::Duration kProcessEnds = absl::Seconds(1);

}  // namespace

MpiTransport::~MpiTransport() {
  if (!MpiIsUsable()) return;
  FreeTypes();
  for (size_t slot = static_cast<size_t>(active_); slot-- > 0;) {  // as in Withdraw
    if (ops_[slot].kind == TransportOp::Kind::kReceive) WithdrawReceive(&requests_[slot]);
  }
  requests_.resize(static_cast<size_t>(active_));
  comm_->Keep({std::move(requests_), TakeKept()});
}

absl::Status MpiTransport::Reserve(int capacity) {
  SLUICE_CHECK(outstanding() == 0, "Reserve with operations outstanding");
  if (capacity <= capacity_) return absl::OkStatus();
  const size_t slots = static_cast<size_t>(capacity);
  requests_.assign(slots, MPI_REQUEST_NULL);
  phases_.resize(slots);
  ops_.resize(slots);
  statuses_.resize(slots);
  indices_.resize(slots);
  events_.resize(slots);
  channels_.reserve(2 * slots);  // so that it never grows
  capacity_ = capacity;
  return absl::OkStatus();
}

absl::Status MpiTransport::Start(absl::Span<const TransportOp> ops) {
  CheckOps(ops, comm_->rank(), comm_->size(), traits());
  SLUICE_RETURN_IF_ERROR(CheckCapacity(ops.size(), outstanding(), capacity_));
  for (const TransportOp& op : ops) StartOne(op);
  return absl::OkStatus();
}

void MpiTransport::StartOne(const TransportOp& op) {
  const size_t slot = static_cast<size_t>(active_);
  ops_[slot] = op;
  phases_[slot] = Phase::kEnded;
  requests_[slot] = MPI_REQUEST_NULL;
  ++active_;
  if (op.kind == TransportOp::Kind::kSend) {
    const Channel channel = ChannelOf(op);
    if (channel.under_way > 0 && (channel.waiting > 0 || !HasRoom(op, Phase::kWhole))) {
      return Enter(slot, Phase::kWaiting);
    }
  }
  if (!EnterFirst(slot)) CloseGaps();
}

bool MpiTransport::EnterFirst(size_t slot) {
  const TransportOp& op = ops_[slot];
  // Without bytes there is no body.
  Enter(slot, op.bytes == 0 || HasRoom(op, Phase::kWhole) ? Phase::kWhole : Phase::kKnock);
  absl::Status status = Post(slot);
  if (status.ok()) return true;
  EndOne(slot, std::move(status));
  return false;
}

void MpiTransport::StartWaiting() {
  undecided_.clear();
  for (size_t slot = 0; slot < static_cast<size_t>(active_) && waiting_ > 0; ++slot) {
    if (phases_[slot] != Phase::kWaiting) continue;
    const TransportOp& op = ops_[slot];
    const Queue queue = {op.kind, op.peer, op.tag};
    if (ChannelOf(op).under_way > 0 &&
        (undecided_.contains(queue) || !HasRoom(op, Phase::kWhole))) {
      undecided_.insert(queue);
      continue;
    }
    EnterFirst(slot);
  }
}

absl::Status MpiTransport::Post(size_t slot) {
  const TransportOp& op = ops_[slot];
  // Open MPI 4.1 connects anew over TCP to a rank that has ended, and may then run in circles for
  // ever inside the next call.
  if (processes_ != nullptr && processes_->IsGone(op.peer)) {
    CutOff(slot);
    return absl::OkStatus();
  }
  const bool send = op.kind == TransportOp::Kind::kSend;
  const bool knock = phases_[slot] == Phase::kKnock;
  MPI_Datatype type = MPI_BYTE;
  int count = knock ? 0 : static_cast<int>(op.bytes);
  if (op.row_bytes != 0 && !knock) {
    SLUICE_ASSIGN_OR_RETURN(type, TypeOf(op));
    count = 1;
  }
  MPI_Request* request = &requests_[slot];
  const int tag = TagOf(slot);
  // Synchronous. A message that MPI takes on its own account would end before its receive has been
  // started. It would lie in the receiver's memory, where nothing bounds the number of such
  // messages.
  const int code = send ? MPI_Issend(op.data, count, type, op.peer, tag, comm_->get(), request)
                        : MPI_Irecv(op.data, count, type, op.peer, tag, comm_->get(), request);
  if (code == MPI_SUCCESS) return absl::OkStatus();
  *request = MPI_REQUEST_NULL;
  return MpiError(code, send ? "MPI_Issend" : "MPI_Irecv", DescribeOp(op, comm_->rank()));
}

int MpiTransport::TagOf(size_t slot) const {
  const TransportOp& op = ops_[slot];
  return phases_[slot] == Phase::kBody ? comm_->BodyTag(op.tag, op.bytes)
                                       : comm_->ChannelTag(op.tag, op.bytes);
}

int64_t MpiTransport::UnmetBytes(const TransportOp& op) {
  // Open MPI's TCP sends so much; its shared memory, UCX and MPICH less.
  constexpr size_t kMost = size_t{64} << 10;
  // MPI keeps a record of each message, and of its shared memory a rank has 512 fragments. Half of
  // them are for the rank's sends, half for the acknowledgements of others' sends. Knocks are not
  // counted: where many channels have one each, mpi_needs.h has more fragments made.
  constexpr size_t kLeast = size_t{16} << 10;
  static_assert(kUnmetBytesMax / kLeast == 256);
  return static_cast<int64_t>(std::clamp(op.bytes, kLeast, kMost));
}

absl::StatusOr<MPI_Datatype> MpiTransport::TypeOf(const TransportOp& op) {
  const RowsKey key = {op.bytes / op.row_bytes, op.row_bytes, op.stride_bytes};
  const auto known = types_.find(key);
  if (known != types_.end()) return known->second;
  if (types_.size() == kTypesMax) FreeTypes();
  MPI_Datatype type = MPI_DATATYPE_NULL;
  int code = MPI_Type_create_hvector(static_cast<int>(key[0]), static_cast<int>(key[1]),
                                     static_cast<MPI_Aint>(key[2]), MPI_BYTE, &type);
  if (code == MPI_SUCCESS) code = MPI_Type_commit(&type);
  if (code != MPI_SUCCESS) {
    return MpiError(code, "MPI_Type_create_hvector", DescribeOp(op, comm_->rank()));
  }
  types_.emplace(key, type);
  return type;
}

void MpiTransport::FreeTypes() {
  for (auto& [key, type] : types_) MPI_Type_free(&type);
  types_.clear();
}

absl::StatusOr<int> MpiTransport::Poll(absl::Span<TransportEvent> events) {
  if (ended_ == 0 && active_ > 0) {
    SLUICE_RETURN_IF_ERROR(Test());
  }
  const int count = std::min(ended_, static_cast<int>(events.size()));
  for (int i = 0; i < count; ++i) {
    events[static_cast<size_t>(i)] = std::move(events_[static_cast<size_t>(first_ended_)]);
    first_ended_ = (first_ended_ + 1) % capacity_;
  }
  ended_ -= count;
  return count;
}

// The last one first: messages come in while this goes on, and each meets the first receive that is
// left.
void MpiTransport::Withdraw() {
  for (size_t slot = static_cast<size_t>(active_); slot-- > 0;) {
    if (ops_[slot].kind == TransportOp::Kind::kReceive) WithdrawOne(slot);
  }
  CloseGaps();
}

bool MpiTransport::Part() {
  parting_ = true;
  Withdraw();
  if (farewell_ == nullptr) {
    std::vector<MpiFarewell::Sent> sends;
    for (size_t slot = 0; slot < static_cast<size_t>(active_); ++slot) {
      const TransportOp& op = ops_[slot];
      if (op.kind != TransportOp::Kind::kSend) continue;
      if (!IsUnderWay(phases_[slot])) {
        EndOne(slot, PartedError(op, comm_->rank()));  // nothing is sent for it any more
      } else {
        sends.push_back({op.peer, TagOf(slot)});
      }
    }
    CloseGaps();
    farewell_ = std::make_unique<MpiFarewell>(comm_, sends, processes_);
  }
  if (processes_ != nullptr) processes_->Check().IgnoreError();
  const bool parted = farewell_->Poll();
  if (processes_ != nullptr && active_ > 0) GiveUpEnded();
  return parted && outstanding() == 0;
}

void MpiTransport::GiveUpEnded() {
  // Polls take in what an ended rank had written before.
  constexpr int kPollsForLastWords = 16;
  if (++polls_since_parting_ < kPollsForLastWords) return;
  for (size_t slot = 0; slot < static_cast<size_t>(active_); ++slot) {
    const TransportOp& op = ops_[slot];
    if (!processes_->HasEnded(op.peer)) continue;
    comm_->Abandon();  // MPI keeps the request
    EndOne(slot, CutOffError(op, ErrorText(RankInWords(op.peer), " has ended")));
  }
  CloseGaps();
}

void MpiTransport::WithdrawOne(size_t slot) {
  const TransportOp& op = ops_[slot];
  // A knock has met the others. Their bodies come, unless the sender parts too.
  if (phases_[slot] != Phase::kWhole && !parting_) return;
  if (!IsUnderWay(phases_[slot])) return EndOne(slot, WithdrawnError(op, comm_->rank()));
  MPI_Cancel(&requests_[slot]);
  int complete = 0;
  MPI_Status outcome;
  const int code = MPI_Test(&requests_[slot], &complete, &outcome);
  if (code != MPI_SUCCESS) {
    return EndOne(slot, MpiError(code, "MPI_Irecv", DescribeOp(op, comm_->rank())));
  }
  if (complete != 0) Completed(slot, outcome, false);  // otherwise a message has met it
}

absl::Status MpiTransport::Test() {
  int count = 0;
  const int code =
      MPI_Testsome(active_, requests_.data(), &count, indices_.data(), statuses_.data());
  const bool error_in_status = code != MPI_SUCCESS && IsErrorInStatus(code);
  if (code != MPI_SUCCESS && !error_in_status) {
    return MpiError(code, "MPI_Testsome",
                    ErrorText(active_, " operations of ", RankInWords(comm_->rank()),
                              ", the first a ", DescribeOp(ops_[0], comm_->rank())));
  }
  if (count == MPI_UNDEFINED) count = 0;  // all have been answered
  for (int k = 0; k < count; ++k) {
    const size_t slot = static_cast<size_t>(indices_[static_cast<size_t>(k)]);
    Completed(slot, statuses_[static_cast<size_t>(k)], error_in_status);
  }
  if (answered_ > 0) PostBodies();
  if (cut_off_ > 0) EndCutOff();
  if (ended_ > 0 && waiting_ > 0) StartWaiting();
  if (ended_ > 0) CloseGaps();
  return absl::OkStatus();
}

void MpiTransport::Completed(size_t slot, const MPI_Status& outcome, bool error_in_status) {
  const TransportOp& op = ops_[slot];
  requests_[slot] = MPI_REQUEST_NULL;
  if (error_in_status && IsEndOfRank(outcome.MPI_ERROR) && !parting_ && processes_ != nullptr &&
      processes_->Sees(op.peer)) {
    return CutOff(slot);
  }
  if (!IsAnswered(slot, outcome, error_in_status)) {
    return EndOne(slot, Outcome(op, outcome, error_in_status));
  }
  if (parting_) {
    const bool send = op.kind == TransportOp::Kind::kSend;
    return EndOne(slot, send ? PartedError(op, comm_->rank()) : WithdrawnError(op, comm_->rank()));
  }
  Enter(slot, Phase::kAnswered);
}

void MpiTransport::CutOff(size_t slot) {
  if (cut_off_ == 0) cut_off_until_.emplace(kProcessEnds);
  Enter(slot, Phase::kCutOff);
  for (size_t other = 0; other < static_cast<size_t>(active_) && waiting_ > 0; ++other) {
    if (phases_[other] != Phase::kWaiting || ops_[other].peer != ops_[slot].peer) continue;
    Enter(other, Phase::kCutOff);
  }
}

void MpiTransport::EndCutOff() {
  const absl::Status ended = processes_->Check();
  const bool passed = cut_off_until_->Passed();
  for (size_t slot = 0; slot < static_cast<size_t>(active_); ++slot) {
    if (phases_[slot] != Phase::kCutOff) continue;
    const TransportOp& op = ops_[slot];
    if (processes_->HasEnded(op.peer)) {
      EndOne(slot, CutOffError(op, ErrorText(ended)));
    } else if (passed) {
      EndOne(slot, CutOffError(op, ErrorText(RankInWords(op.peer), " has ended, says MPI")));
    }
  }
}

absl::Status MpiTransport::CutOffError(const TransportOp& op, const ErrorText& who) const {
  return MakeError(absl::StatusCode::kUnavailable, DescribeOp(op, comm_->rank()), ": ", who);
}

// A knock, or a message without bytes where some were to come.
bool MpiTransport::IsAnswered(size_t slot, const MPI_Status& outcome, bool error_in_status) const {
  if (error_in_status && outcome.MPI_ERROR != MPI_SUCCESS) return false;
  if (ops_[slot].kind == TransportOp::Kind::kSend) return phases_[slot] == Phase::kKnock;
  if (phases_[slot] != Phase::kWhole || ops_[slot].bytes == 0) return false;
  int cancelled = 0;
  MPI_Test_cancelled(&outcome, &cancelled);
  int bytes = -1;
  MPI_Get_count(&outcome, MPI_BYTE, &bytes);
  return cancelled == 0 && bytes == 0;
}

// Bodies meet in the order of their knocks. So an operation waits for those before it in its
// channel that have not been answered, or wait themselves.
void MpiTransport::PostBodies() {
  undecided_.clear();
  for (size_t slot = 0; slot < static_cast<size_t>(active_); ++slot) {
    const TransportOp& op = ops_[slot];
    const bool send = op.kind == TransportOp::Kind::kSend;
    const bool answered = phases_[slot] == Phase::kAnswered;
    if (!answered && phases_[slot] != (send ? Phase::kKnock : Phase::kWhole)) continue;
    if (!answered || !HasRoom(op, Phase::kBody) || undecided_.contains(QueueOf(op))) {
      undecided_.insert(QueueOf(op));
      continue;
    }
    Enter(slot, Phase::kBody);
    if (absl::Status status = Post(slot); !status.ok()) EndOne(slot, std::move(status));
  }
}

void MpiTransport::Enter(size_t slot, Phase phase) {
  const TransportOp& op = ops_[slot];
  if (int64_t* const unmet = UnmetBytesOf(op, phases_[slot])) *unmet -= UnmetBytes(op);
  if (int64_t* const unmet = UnmetBytesOf(op, phase)) *unmet += UnmetBytes(op);
  if (op.kind == TransportOp::Kind::kSend) CountInChannel(op, phases_[slot], phase);
  for (const auto& [counted, count] : {std::pair{Phase::kWaiting, &waiting_},
                                       {Phase::kAnswered, &answered_},
                                       {Phase::kCutOff, &cut_off_}}) {
    *count += (phase == counted ? 1 : 0) - (phases_[slot] == counted ? 1 : 0);
  }
  phases_[slot] = phase;
}

void MpiTransport::CountInChannel(const TransportOp& op, Phase from, Phase to) {
  const auto found = channels_.try_emplace({op.peer, op.tag}).first;
  Channel& channel = found->second;
  for (const auto& [phase, change] : {std::pair{from, -1}, {to, 1}}) {
    if (phase == Phase::kEnded) continue;
    (phase == Phase::kWaiting ? channel.waiting : channel.under_way) += change;
  }
  if (channel.under_way == 0 && channel.waiting == 0) channels_.erase(found);
}

MpiTransport::Channel MpiTransport::ChannelOf(const TransportOp& op) const {
  const auto found = channels_.find({op.peer, op.tag});
  return found == channels_.end() ? Channel() : found->second;
}

int64_t* MpiTransport::UnmetBytesOf(const TransportOp& op, Phase phase) {
  if (op.kind != TransportOp::Kind::kSend) return nullptr;
  const size_t peer = static_cast<size_t>(op.peer);
  if (phase == Phase::kWhole) return &unmet_bytes_[peer];
  return phase == Phase::kBody ? &unmet_bodies_[peer] : nullptr;
}

bool MpiTransport::HasRoom(const TransportOp& op, Phase phase) {
  const int64_t* const unmet = UnmetBytesOf(op, phase);
  return unmet == nullptr || *unmet == 0 || *unmet + UnmetBytes(op) <= unmet_bytes_max_;
}

void MpiTransport::EndOne(size_t slot, absl::Status status) {
  Enter(slot, Phase::kEnded);
  requests_[slot] = MPI_REQUEST_NULL;
  End(ops_[slot].cookie, std::move(status));
}

absl::Status MpiTransport::Outcome(const TransportOp& op, const MPI_Status& outcome,
                                   bool error_in_status) const {
  const bool send = op.kind == TransportOp::Kind::kSend;
  // MPI leaves MPI_ERROR alone unless the call says that errors are in the statuses.
  if (error_in_status && outcome.MPI_ERROR != MPI_SUCCESS) {
    return MpiError(outcome.MPI_ERROR, send ? "MPI_Issend" : "MPI_Irecv",
                    DescribeOp(op, comm_->rank()));
  }
  if (send) return absl::OkStatus();
  int cancelled = 0;
  MPI_Test_cancelled(&outcome, &cancelled);
  if (cancelled != 0) return WithdrawnError(op, comm_->rank());
  int bytes = 0;
  MPI_Get_count(&outcome, MPI_BYTE, &bytes);
  if (static_cast<size_t>(bytes) == op.bytes) return absl::OkStatus();
  return LengthError(op, comm_->rank(), static_cast<size_t>(bytes));
}

void MpiTransport::End(uint64_t cookie, absl::Status status) {
  TransportEvent& event = events_[static_cast<size_t>((first_ended_ + ended_) % capacity_)];
  event.cookie = cookie;
  event.status = std::move(status);
  ++ended_;
}

void MpiTransport::CloseGaps() {
  size_t kept = 0;
  for (size_t slot = 0; slot < static_cast<size_t>(active_); ++slot) {
    if (phases_[slot] == Phase::kEnded) continue;
    if (kept != slot) {
      requests_[kept] = requests_[slot];
      phases_[kept] = phases_[slot];
      ops_[kept] = ops_[slot];
    }
    ++kept;
  }
  active_ = static_cast<int>(kept);
}

}  // namespace sluice
