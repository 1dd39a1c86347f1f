"""Following a few objects of a Kubernetes API server, with as little as that takes.

Relays follow EndpointSlices, transceivers one ConfigMap; nothing of theirs ever writes. The official client would
do it too, but importing it costs a second and 74 MiB, in processes that are there many times and that have to be
back in a moment when they were killed. What is needed of it is one list, one watch and what can go wrong with
either: `watched` is that logic without a socket, `follow` the loop on aiohttp around it, `api` how to reach the
server from within a pod. Import each from its module: only `follow` brings aiohttp along.

    await follow(KubeApi.in_cluster(os.environ), "/api/v1/namespaces/ns/configmaps",
                 field_selector="metadata.name=vips", on_change=...)
"""
