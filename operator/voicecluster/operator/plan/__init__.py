"""From a `VoiceCluster` to the processes it needs. Pure: the same input gives the same plan.

`plan()` is the way in. A `Process` is a pod reduced to what both a pod and a local process have: a command,
volumes mounted as directories, environment, addresses and ports. Where things live (pod addresses, local
addresses, mount paths) is asked of a `Placement`; key material is passed in.
"""
