# SPDX-License-Identifier: Apache-2.0
"""What runs in the machine of the executor: codec.py, then runner.py, as one program. They import nothing of this package."""
