"""The local stack: the plan of a VoiceCluster run as processes of this machine."""
