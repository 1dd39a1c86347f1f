// One call over the Realtime WebRTC API: an offer, its answer, the data channel `oai-events`, and ICE restarts.
// Knows nothing of the page; tells what happens by events (state, message, sent, location).

const fragment = (sdp, name) => sdp.match(new RegExp(`^a=${name}:(.*)$`, "m"))?.[1].trim();

/** What a PATCH carries (RFC 8840): the new credentials of our side, for the section the transport belongs to. */
function restartFragment(sdp) {
  const media = sdp.match(/^m=audio.*$/m)[0].trim();
  return [`a=ice-ufrag:${fragment(sdp, "ice-ufrag")}`, `a=ice-pwd:${fragment(sdp, "ice-pwd")}`, media,
    `a=mid:${fragment(sdp, "mid")}`, ""].join("\r\n");
}

/** The answer of before with the transport's new credentials. */
function renewedAnswer(answer, reply) {
  return answer
    .replace(/^a=ice-ufrag:.*$/gm, `a=ice-ufrag:${fragment(reply, "ice-ufrag")}`)
    .replace(/^a=ice-pwd:.*$/gm, `a=ice-pwd:${fragment(reply, "ice-pwd")}`);
}

export class Call extends EventTarget {
  constructor({ base = "", model, region, key }) {
    super();
    this.base = base;
    this.query = new URLSearchParams({ ...(model && { model }), ...(region && { region }) });
    this.headers = key ? { Authorization: `Bearer ${key}` } : {};
    this.peer = new RTCPeerConnection();
    this.channel = this.peer.createDataChannel("oai-events");
    this.location = null;
    this.started = performance.now();
    this.channel.onmessage = (message) => this.#tell("message", JSON.parse(message.data));
    this.peer.onconnectionstatechange = () => this.#tell("state", this.peer.connectionState);
    this.peer.ontrack = (event) => this.#tell("track", event.streams[0] ?? new MediaStream([event.track]));
  }

  #tell(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }

  async #request(method, url, body, type) {
    const headers = { ...this.headers, ...(type && { "Content-Type": type }) };
    const reply = await fetch(this.base + url, { method, headers, body });
    if (!reply.ok) {
      const problem = await reply.json().catch(() => null);
      throw Object.assign(new Error(problem?.error?.message ?? `HTTP ${reply.status}`), { status: reply.status });
    }
    return reply;
  }

  /** Offer `stream`'s audio and apply the answer. Rejects with the server's own words. */
  async start(stream) {
    for (const track of stream.getAudioTracks()) this.peer.addTrack(track, stream);
    await this.peer.setLocalDescription();
    const reply = await this.#request("POST", `/v1/realtime/calls?${this.query}`, this.peer.localDescription.sdp, "application/sdp");
    this.location = new URL(reply.headers.get("Location"), location.href).pathname;
    this.#tell("location", this.location.split("/").pop());
    this.answer = await reply.text();
    await this.peer.setRemoteDescription({ type: "answer", sdp: this.answer });
  }

  /** New ICE credentials on both sides; DTLS and the call go on. */
  async restart() {
    await this.peer.setLocalDescription(await this.peer.createOffer({ iceRestart: true }));
    const body = restartFragment(this.peer.localDescription.sdp);
    const reply = await this.#request("PATCH", this.location, body, "application/trickle-ice-sdpfrag");
    this.answer = renewedAnswer(this.answer, await reply.text());
    await this.peer.setRemoteDescription({ type: "answer", sdp: this.answer });
  }

  send(event) {
    this.channel.send(JSON.stringify(event));
    this.#tell("sent", event);
  }

  async debug() {
    return (await this.#request("GET", `${this.location}/debug`)).json();
  }

  /** The numbers a person watches: round trip and jitter in milliseconds, loss in percent, the chosen pair. */
  async quality() {
    const stats = await this.peer.getStats();
    const all = [...stats.values()];
    const transport = all.find((entry) => entry.type === "transport" && entry.selectedCandidatePairId);
    const pair = transport ? stats.get(transport.selectedCandidatePairId)
      : all.find((entry) => entry.type === "candidate-pair" && entry.state === "succeeded" && (entry.selected || entry.nominated));
    const inbound = all.find((entry) => entry.type === "inbound-rtp" && entry.kind === "audio");
    const expected = (inbound?.packetsReceived ?? 0) + (inbound?.packetsLost ?? 0);
    const [local, remote] = [stats.get(pair?.localCandidateId), stats.get(pair?.remoteCandidateId)];
    const show = (side) => (side ? `${side.address ?? "?"}:${side.port} ${side.protocol} ${side.candidateType}` : "?");
    return {
      rttMs: pair?.currentRoundTripTime === undefined ? null : pair.currentRoundTripTime * 1000,
      jitterMs: inbound ? inbound.jitter * 1000 : null,
      lossPercent: expected ? (100 * Math.max(0, inbound.packetsLost)) / expected : null,
      received: inbound?.packetsReceived ?? 0,
      pair: pair ? `${show(local)} → ${show(remote)}` : null,
      remotes: all.filter((entry) => entry.type === "remote-candidate").map((entry) => `${entry.address}:${entry.port}`),
    };
  }

  async stop() {
    const { location } = this;
    this.location = null;
    this.peer.close();
    if (location) await this.#request("POST", `${location}/hangup`).catch(() => null); // it may have ended by itself
  }
}
