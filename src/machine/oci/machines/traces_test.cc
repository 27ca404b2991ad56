// SPDX-License-Identifier: Apache-2.0
#include "machine/oci/machines/test_oci_traces.h"

namespace caisson::machine::oci {
namespace {

INSTANTIATE_TEST_SUITE_P(By, OciTraces, testing::Values(OciKind{"runc"}, OciKind{"runsc"}),
                         NameOfKind);

}  // namespace
}  // namespace caisson::machine::oci
