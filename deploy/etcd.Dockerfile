# etcd and etcdctl as Debian ships them, the version that Tenure's tests run on. Used by
# deploy/compose.yaml only; a cluster of your own serves as well.
FROM debian:bookworm-slim
RUN apt-get update \
  && apt-get install -y --no-install-recommends etcd-server etcd-client \
  && rm -rf /var/lib/apt/lists/* \
  && install -d -o 1000 -g 1000 -m 700 /data
USER 1000:1000
VOLUME /data
EXPOSE 2379 2380
STOPSIGNAL SIGTERM
CMD ["etcd"]
