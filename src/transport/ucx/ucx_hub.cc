// Making a worker of UCX, and its end.
#include "transport/ucx/ucx_hub.h"

#include <algorithm>
#include <random>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "tensor/check.h"
#include "tensor/error_text.h"
#include "transport/deadline.h"
#include "transport/environment_variable.h"
#include "transport/ucx/ucx_transport.h"

namespace sluice {
namespace {

constexpr unsigned kUcxApiMajor = 1;
constexpr unsigned kUcxApiMinor = 13;  // nothing younger is used

// A hint by which UCX chooses networks, not a limit. With many, it leaves TCP out.
constexpr size_t kEndpointsHint = 8;

// Words for ranks that do not read are given up after this time.
constexpr absl::Duration kLastWords = absl::Seconds(1);

uint64_t RandomBits() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

}  // namespace

absl::StatusOr<std::shared_ptr<UcxWorker>> UcxWorker::Create(UcxTcp tcp) {
  SLUICE_ASSIGN_OR_RETURN(const UcxLibrary* const library, UcxLibrary::Get());
  return UcxHub::Make(*library, tcp);
}

absl::StatusOr<std::shared_ptr<UcxHub>> UcxHub::Make(const UcxLibrary& library, UcxTcp tcp) {
  std::shared_ptr<UcxHub> hub(new UcxHub(library, RandomBits()));
  SLUICE_RETURN_IF_ERROR(hub->Begin(tcp));
  return hub;
}

absl::Status UcxHub::MakeContext(const UcxNetworks& networks) {
  ucp_config_t* config = nullptr;
  ucs_status_t status = library_.ucp_config_read(nullptr, nullptr, &config);
  if (status != UCS_OK) return library_.Error(status, "reading UCX's environment");
  std::vector<std::pair<const char*, std::string>> settings;
  if (!networks.transports.empty()) settings.emplace_back("TLS", networks.transports);
  if (!networks.devices.empty()) settings.emplace_back("NET_DEVICES", networks.devices);
  // Over TCP, UCX 1.13.1 may send bytes from where they lie. If the peer is killed meanwhile, an
  // assertion of UCX (uct_iface.h, comp->count) ends this process. So bytes are copied once, unless
  // the user decides. Devices for RDMA are not concerned.
  if (networks.tcp && !HasRdmaDevice() && EnvironmentVariable("UCX_ZCOPY_THRESH").empty()) {
    settings.emplace_back("ZCOPY_THRESH", "inf");
  }
  for (const auto& [name, value] : settings) {
    status = library_.ucp_config_modify(config, name, value.c_str());
    if (status != UCS_OK) {
      library_.ucp_config_release(config);
      return library_.Error(status, absl::StrCat("setting UCX's ", name, " to ", value));
    }
  }
  ucp_params_t params = {};
  params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS;
  params.features = UCP_FEATURE_TAG | UCP_FEATURE_AM;
  params.estimated_num_eps = kEndpointsHint;
  status = library_.ucp_init_version(kUcxApiMajor, kUcxApiMinor, &params, config, &context_);
  library_.ucp_config_release(config);
  if (status == UCS_OK) return absl::OkStatus();
  context_ = nullptr;
  return library_.Error(status, "making a UCX context");
}

// Whether anything here reaches another process. UCX says so only when it is to connect.
absl::Status UcxHub::CheckReach() {
  SLUICE_ASSIGN_OR_RETURN(auto address, AskForAddress());
  UcxPeersShared shared{library_, worker_, 0, {}, {}};
  UcxPeer self(&shared, 0, {token_, std::move(address)});
  self.Connect();
  if (!self.failure().ok()) {
    return absl::UnavailableError(
        "UCX has no device here but TCP, and its own TCP asks nobody for a proof; SLUICE_WIRES=ucx "
        "with UCX_TLS=tcp takes it all the same, on the loopback interface unless UCX_NET_DEVICES "
        "names others");
  }
  self.Break(absl::UnavailableError("it was for a look"));
  self.Close();
  const Deadline deadline(kLastWords);
  while (!self.is_closed() && !deadline.Passed()) {
    library_.ucp_worker_progress(worker_);
    self.Attend();
  }
  if (self.is_closed()) return absl::OkStatus();
  return absl::UnavailableError("UCX does not close a connection with itself");
}

absl::Status UcxHub::Begin(UcxTcp tcp) {
  SLUICE_ASSIGN_OR_RETURN(const UcxNetworks networks,
                          ChooseUcxNetworks(EnvironmentVariable("UCX_TLS"),
                                            EnvironmentVariable("UCX_NET_DEVICES"), tcp));
  SLUICE_RETURN_IF_ERROR(MakeContext(networks));
  ucp_worker_params_t worker_params = {};
  worker_params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  worker_params.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  ucs_status_t status = library_.ucp_worker_create(context_, &worker_params, &worker_);
  if (status != UCS_OK) {
    worker_ = nullptr;
    return library_.Error(status, "making a UCX worker");
  }
  flights_ = std::make_unique<UcxFlights>(library_, worker_);
  if (!networks.tcp) {
    SLUICE_RETURN_IF_ERROR(CheckReach());
  }
  ucp_am_handler_param_t handler = {};
  handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                       UCP_AM_HANDLER_PARAM_FIELD_ARG;
  handler.id = kUcxActiveMessage;
  handler.cb = OnMessage;
  handler.arg = this;
  status = library_.ucp_worker_set_am_recv_handler(worker_, &handler);
  if (status != UCS_OK) return library_.Error(status, "listening to a UCX worker");
  SLUICE_ASSIGN_OR_RETURN(auto address, AskForAddress());
  address_ = PackUcxAddress({token_, std::move(address)});
  if (address_.size() > kMaxAddressBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the address of the UCX worker has ", address_.size(), " bytes, and ",
                     kMaxAddressBytes, " is the most: UCX_NET_DEVICES can choose fewer devices"));
  }
  // Numbers begin where nobody guesses them.
  next_data_ = RandomBits() >> 1;
  return absl::OkStatus();
}

absl::StatusOr<std::string> UcxHub::AskForAddress() const {
  ucp_worker_attr_t attributes = {};
  attributes.field_mask = UCP_WORKER_ATTR_FIELD_ADDRESS;
  const ucs_status_t status = library_.ucp_worker_query(worker_, &attributes);
  if (status != UCS_OK) return library_.Error(status, "asking for the address of a UCX worker");
  std::string address(reinterpret_cast<const char*>(attributes.address), attributes.address_length);
  library_.ucp_worker_release_address(worker_, attributes.address);
  return address;
}

UcxHub::~UcxHub() {
  // No transport is left: they keep this.
  const Deadline deadline(kLastWords);
  const auto is_owed = [](const auto& peer) { return peer->HasMoreToTell(); };
  while (std::any_of(peers_.begin(), peers_.end(), is_owed) && !deadline.Passed()) {
    Advance();
    std::this_thread::yield();
  }
  for (const auto& peer : peers_) {
    peer->Break(absl::UnavailableError("this rank's worker ends"));  // so none connects again
    peer->Close();
  }
  const auto is_closed = [](const auto& peer) { return peer->is_closed(); };
  while (!std::all_of(peers_.begin(), peers_.end(), is_closed) && !deadline.Passed()) {
    Advance();
    std::this_thread::yield();
  }
  if (flights_ != nullptr) flights_->KeepAllForEver();
  if (worker_ != nullptr) library_.ucp_worker_destroy(worker_);
  flights_ = nullptr;
  if (context_ != nullptr) library_.ucp_cleanup(context_);
}

absl::Status UcxHub::SetPeers(int rank, std::vector<std::string> addresses) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!peers_.empty()) return absl::FailedPreconditionError("the UCX worker has its peers already");
  if (rank < 0 || static_cast<size_t>(rank) >= addresses.size()) {
    return MakeError(absl::StatusCode::kInvalidArgument, RankInWords(rank), " is none of ",
                     addresses.size(), " UCX workers");
  }
  if (addresses[static_cast<size_t>(rank)] != address_) {
    return MakeError(absl::StatusCode::kInvalidArgument, "the UCX address of ", RankInWords(rank),
                     " is not the one of its own worker");
  }
  std::vector<UcxAddress> unpacked;
  unpacked.reserve(addresses.size());
  for (size_t peer = 0; peer < addresses.size(); ++peer) {
    auto address = UnpackUcxAddress(addresses[peer]);
    if (!address.ok()) {
      return MakeError(absl::StatusCode::kInvalidArgument, RankInWords(peer), ": ",
                       address.status());
    }
    unpacked.push_back(*std::move(address));
  }
  rank_ = rank;
  shared_.emplace(UcxPeersShared{library_, worker_, rank, {}, {}});
  for (size_t peer = 0; peer < unpacked.size(); ++peer) {
    peers_.push_back(
        std::make_unique<UcxPeer>(&*shared_, static_cast<int>(peer), std::move(unpacked[peer])));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Transport>> UcxHub::OpenTransport(int number) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (peers_.empty()) return absl::FailedPreconditionError("the UCX worker has no peers yet");
  SLUICE_CHECK(number >= 0 && number < kMaxTransports, "the transport's number is out of range");
  std::unique_ptr<UcxPost>& post = posts_[number];
  if (closed_[static_cast<size_t>(number)] || (post != nullptr && post->transport != nullptr)) {
    if (post == nullptr) posts_.erase(number);
    return absl::FailedPreconditionError(
        absl::StrCat("transport ", number, " of the UCX worker has been opened before"));
  }
  if (post == nullptr) {
    post = std::make_unique<UcxPost>(size());
  } else {
    --unopened_;
  }
  auto transport = std::make_unique<UcxTransport>(shared_from_this(), number, post.get());
  post->transport = transport.get();
  return transport;
}

void UcxHub::CloseTransport(int number) {
  closed_[static_cast<size_t>(number)] = true;
  posts_.erase(number);
}

absl::Status UcxHub::CheckRanks() {
  const std::lock_guard<std::mutex> lock(mutex_);
  ErrorText broken;
  for (const auto& peer : peers_) {
    if (!peer->failure().ok()) broken.Add(broken.empty() ? "" : "; ", peer->failure());
  }
  if (broken.empty()) return absl::OkStatus();
  return broken.ToStatus(absl::StatusCode::kUnavailable);
}

}  // namespace sluice
