// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <iterator>
#include <optional>
#include <string>

#include "cli/commands.h"
#include "cli/files.h"
#include "cli/interrupt.h"
#include "errors/images.h"
#include "images/build.h"
#include "images/definition.h"
#include "images/layout.h"
#include "images/store.h"
#include "machine/microvm/boot_files.h"
#include "machine/oci/bundle.h"

namespace caisson::cli {
namespace {

constexpr std::size_t kShownDifferences = 50;
constexpr std::size_t kShortId = 12;

std::string DefinitionsDirectory(const ImagesArguments& arguments) {
  return arguments.definitions ? *arguments.definitions : RuntimesDirectory() + "/images";
}

std::int64_t Integer(const json::Value& info, std::string_view key) {
  const json::Value* found = info.Find(key);
  return found != nullptr && found->is_int() ? found->as_int() : 0;
}
std::string Text(const json::Value& info, std::string_view key) {
  const json::Value* found = info.Find(key);
  return found != nullptr && found->is_string() ? found->as_string() : "";
}

json::Value ToJson(const images::Image& image) {
  json::Object out{{"id", image.id}};
  json::Array names;
  for (const std::string& name : image.names) names.emplace_back(name);
  out.Set("names", std::move(names));
  for (const char* key :
       {"description", "suite", "architecture", "python", "built_at", "build_seconds", "files",
        "bytes", "definition_sha256", "packages", "libraries"}) {
    if (const json::Value* value = image.info.Find(key)) out.Set(key, *value);
  }
  out.Set("root", image.root);
  out.Set("erofs", image.erofs.empty() ? json::Value() : json::Value(image.erofs));
  return out;
}

std::string Age(const std::string& built_at) {
  std::tm when{};
  if (strptime(built_at.c_str(), "%Y-%m-%dT%H:%M:%SZ", &when) == nullptr) return "?";
  const auto seconds = static_cast<long long>(std::time(nullptr) - timegm(&when));
  if (seconds < 3600) return fmt::format("{} min", std::max(0LL, seconds) / 60);
  if (seconds < 2LL * 86400) return fmt::format("{} h", seconds / 3600);
  return fmt::format("{} days", seconds / 86400);
}

std::string ToTable(const std::vector<images::Image>& all) {
  if (all.empty()) return "There are no images here; `caisson images build NAME` makes one.\n";
  std::string text =
      fmt::format("{:<20} {:<12} {:>9} {:>8}  {}\n", "NAME", "ID", "SIZE", "AGE", "LIBRARIES");
  for (const images::Image& image : all) {
    std::string names;
    for (const std::string& name : image.names) names += (names.empty() ? "" : ",") + name;
    const json::Value* libraries = image.info.Find("libraries");
    const std::size_t count =
        libraries != nullptr && libraries->is_object() ? libraries->as_object().size() : 0;
    text += fmt::format("{:<20} {:<12} {:>5} MiB {:>8}  {}\n", names.empty() ? "(none)" : names,
                        image.id.substr(0, kShortId), Integer(image.info, "bytes") >> 20,
                        Age(Text(image.info, "built_at")), count);
  }
  return text;
}

images::BuildOptions OptionsOf(const ImagesArguments& arguments, Console& console,
                               std::stop_token stop) {
  images::BuildOptions options;
  options.update_lock = arguments.update_lock;
  options.allow_newer = arguments.allow_newer;
  options.erofs = arguments.erofs;
  options.apt_sources = arguments.apt_sources;
  options.guest_apt_sources = arguments.guest_apt_sources;
  options.programs_directory = ProgramDirectory();
  options.stop = std::move(stop);
  options.progress = [&console, start = std::chrono::steady_clock::now()](std::string_view step) {
    const auto seconds =
        std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - start);
    console.Info(fmt::format("{:>4} s  {}", seconds.count(), step));
  };
  return options;
}

Status DifferStatus(const std::vector<images::Difference>& differences) {
  Status status{.code = errors::kImagesDiffers,
                .message = fmt::format("two builds differ in {} paths", differences.size())};
  for (std::size_t i = 0; i < std::min(differences.size(), kShownDifferences); ++i) {
    status.details += fmt::format("  /{} {}\n", differences[i].path, differences[i].what);
  }
  return status;
}

// Reads a script from standard input, until runs bring a harness of their own.
Result<void> Bundle(const images::Image& image, const ImagesArguments& arguments) {
  if (!arguments.bundle) return {};
  const std::string program = Text(image.info, "python");
  if (program.empty()) {
    return Fail(errors::kImagesDefinition,
                "the image has no Python, which is what a bundle runs; leave out --bundle");
  }
  return machine::oci::WriteBundle(image, {program, "-I", "-"}, *arguments.bundle);
}

// Empty when none is wanted.
Result<std::optional<images::Layout>> Layout(const images::Image& image,
                                             const ImagesArguments& arguments,
                                             const images::BuildOptions& options) {
  if (!arguments.oci) return std::nullopt;
  CAISSON_ASSIGN(images::Layout layout, images::WriteLayout(image, {.name = arguments.names.at(0),
                                                                    .destination = *arguments.oci,
                                                                    .progress = options.progress,
                                                                    .stop = options.stop}));
  return layout;
}

ExitCode Present(const images::Image& image, const ImagesArguments& arguments,
                 const images::BuildOptions& options, Console& console) {
  auto bundled = Bundle(image, arguments);
  if (!bundled) return console.Complain(bundled.error());
  auto layout = Layout(image, arguments, options);
  if (!layout) return console.Complain(layout.error());
  json::Value out = ToJson(image);
  if (*layout) {
    out.mutable_object().Set("oci", json::Object{{"path", *arguments.oci},
                                                 {"image_digest", (*layout)->image_digest},
                                                 {"layer_digest", (*layout)->layer_digest}});
  }
  return PrintJson(out, console);
}

std::optional<images::Image> FindBuilt(const images::Store& store,
                                       const images::Definition& definition) {
  auto image = store.Find(definition.name);
  if (!image || Text(image->info, "definition_sha256") != definition.digest) return std::nullopt;
  return *std::move(image);
}

ExitCode BuildImage(const images::Store& store, const ImagesArguments& arguments,
                    Console& console) {
  const Interrupt interrupt(console);
  auto definition = images::LoadDefinition(DefinitionsDirectory(arguments), arguments.names.at(0));
  if (!definition) return console.Complain(definition.error());
  const images::BuildOptions options = OptionsOf(arguments, console, interrupt.token());
  if (arguments.unless_built) {
    if (const auto built = FindBuilt(store, *definition)) {
      return Present(*built, arguments, options, console);
    }
  }
  if (!arguments.verify) {
    auto image = images::Build(store, *definition, options);
    return image ? Present(*image, arguments, options, console) : console.Complain(image.error());
  }
  auto verified = images::BuildTwice(store, *definition, options);
  if (!verified) return console.Complain(verified.error());
  const ExitCode printed = Present(verified->image, arguments, options, console);
  if (printed != ExitCode::kOk || verified->differences.empty()) return printed;
  return console.Complain(DifferStatus(verified->differences));
}

ExitCode ListImages(const images::Store& store, const ImagesArguments& arguments,
                    Console& console) {
  auto all = store.List();
  if (!all) return console.Complain(all.error());
  if (!arguments.json && isatty(STDOUT_FILENO) == 1) return PrintText(ToTable(*all), console);
  json::Array list;
  std::ranges::transform(*all, std::back_inserter(list), ToJson);
  return PrintJson(json::Object{{"images", std::move(list)}}, console);
}

ExitCode RemoveImages(const images::Store& store, const ImagesArguments& arguments,
                      Console& console) {
  json::Array removed;
  for (const std::string& name : arguments.names) {
    auto ids = store.Remove(name);
    if (!ids) return console.Complain(ids.error());
    for (const std::string& id : *ids) removed.emplace_back(id);
  }
  return PrintJson(json::Object{{"removed", std::move(removed)}}, console);
}

ExitCode FetchGuestKernel(const ImagesArguments& arguments, Console& console) {
  const Interrupt interrupt(console);
  const std::string directory =
      arguments.kernel.value_or(machine::microvm::DefaultKernelDirectory());
  const auto version = machine::microvm::FetchKernel(
      {.directory = directory,
       .progress = [&console](std::string_view step) { console.Info(std::string(step)); },
       .stop = interrupt.token()});
  if (!version) return console.Complain(version.error());
  console.Info(fmt::format("{} holds {}", directory, version->substr(0, version->find('\n'))));
  return ExitCode::kOk;
}

}  // namespace

ExitCode Images(const ImagesArguments& arguments, Console& console) {
  auto store = images::Store::Open(images::Store::DefaultDirectory());
  if (!store) return console.Complain(store.error());
  switch (arguments.action) {
    case ImagesArguments::Action::kBuild:
      return BuildImage(*store, arguments, console);
    case ImagesArguments::Action::kList:
      return ListImages(*store, arguments, console);
    case ImagesArguments::Action::kRemove:
      return RemoveImages(*store, arguments, console);
    case ImagesArguments::Action::kKernel:
      return FetchGuestKernel(arguments, console);
  }
  std::abort();
}

}  // namespace caisson::cli
