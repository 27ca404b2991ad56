# SPDX-License-Identifier: Apache-2.0
def work(state:
    return {}
