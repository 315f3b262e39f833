# Builds and tests Keyway in one stage, and leaves the program alone in the other.
FROM swift:6.3-bookworm AS build
RUN apt-get update \
  && apt-get install -y --no-install-recommends libmicrohttpd-dev libsqlite3-dev chromium chromium-driver curl python3-venv \
  && rm -rf /var/lib/apt/lists/*
WORKDIR /keyway
COPY . .
RUN python3 -m venv .build/python \
  && .build/python/bin/pip install -q -r Tests/IntegrationTests/requirements.txt \
  && swift test
RUN swift build -c release --product keyway \
  && install -D "$(swift build -c release --show-bin-path)/keyway" /out/bin/keyway

FROM swift:6.3-bookworm-slim
RUN apt-get update \
  && apt-get install -y --no-install-recommends libmicrohttpd12 libsqlite3-0 libcurl4 \
  && rm -rf /var/lib/apt/lists/* \
  && useradd --system --home-dir /srv/keyway --create-home keyway \
  && install -d -o keyway /srv/keyway/data
COPY --from=build /out/bin/keyway /usr/local/bin/keyway
COPY --from=build /keyway/Config /srv/keyway/Config
WORKDIR /srv/keyway
USER keyway
# In a container the loopback is nobody's: listen on every address. The server answers to the names localhost and
# 127.0.0.1; a deployment under another name sets KEYWAY_NAMES.
ENV KEYWAY_HOST=0.0.0.0 KEYWAY_STORE=/srv/keyway/data
VOLUME /srv/keyway/data
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=3s --retries=3 CMD ["keyway", "get", "/healthz"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["keyway"]
CMD ["serve"]
