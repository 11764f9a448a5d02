# syntax=docker/dockerfile:1
#
# The gateway, its plugins and their presets, and nothing else: no shell, no package manager, nothing that is writable.
# Runs as nobody in particular with a read-only root; the configuration comes in HOOKGATE_CONFIG.
#
#   docker build --tag hookgate:dev .
#   docker buildx build --platform linux/amd64,linux/arm64 --tag … --push .    # on a builder with both
#
# What the last stage holds is put together by infra/image/root.sh, which `make infra-image` tries without Docker.

ARG RUST_VERSION=1.95.0

FROM rust:${RUST_VERSION}-slim-bookworm AS build
RUN apt-get update && apt-get install --yes --no-install-recommends ca-certificates \
    && rm -rf /var/lib/apt/lists/* \
    && rustup target add wasm32-unknown-unknown
WORKDIR /src
COPY . .
# One architecture's cache is no use to another.
ARG TARGETARCH
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target,id=hookgate-target-${TARGETARCH} \
    --mount=type=cache,target=/src/plugins/target,id=hookgate-plugins-${TARGETARCH} \
    cargo build --locked --release --package hookgate --bin hookgate \
    && target/release/hookgate plugin build plugins --out /plugins \
    && cp plugins/*/presets/*.json /plugins/ \
    && infra/image/root.sh target/release/hookgate /plugins /image

FROM scratch
COPY --from=build /image /
USER 65532:65532
EXPOSE 8080 8081
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["/hookgate", "health", "--config", "env:HOOKGATE_CONFIG"]
ENTRYPOINT ["/hookgate"]
CMD ["--log-format", "json", "serve", "--config", "env:HOOKGATE_CONFIG"]
