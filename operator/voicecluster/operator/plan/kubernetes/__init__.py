"""The objects of a `VoiceCluster` in Kubernetes. Pure: dicts out of a resource and facts, the same for the same.

`objects()` is the way in; there is one builder per kind of object, and each says which fields are ours.
"""
