# SPDX-License-Identifier: Apache-2.0
# The image python-science for those who have Docker or Podman and no caisson to build it with: the same
# Debian release, packages and locked wheels as python-science.json. It also holds what the base image
# does (a shell, apt); `caisson images build python-science --oci FILE.tar` makes one that does not, and
# that is the same byte by byte each time. Build it from the top of the source tree:
#
#   docker build --file runtimes/images/python-science.Dockerfile --tag python-science:latest .
FROM debian:bookworm-slim AS libraries
RUN apt-get update \
 && apt-get install --yes --no-install-recommends python3.11 python3-pip
COPY runtimes/python-native.lock /python-native.lock
RUN python3.11 -m pip install --no-cache-dir --no-deps --only-binary :all: --require-hashes \
    --target /libraries --requirement /python-native.lock

FROM debian:bookworm-slim
RUN apt-get update \
 && apt-get install --yes --no-install-recommends python3.11 libstdc++6 \
 && rm -rf /var/lib/apt/lists/* \
 && ln --symbolic --force python3.11 /usr/bin/python3
COPY --from=libraries /libraries /usr/lib/python3/dist-packages
RUN python3.11 -m compileall -q --invalidation-mode unchecked-hash /usr/lib/python3/dist-packages || true
USER 1001:1001
ENV HOME=/tmp
WORKDIR /
ENTRYPOINT ["/usr/bin/python3.11", "-I"]
