// The page: buttons, meters and log around one Call.
import { Call } from "/page/call.js";
import { Plot, Scope } from "/page/draw.js";

const $ = (id) => document.getElementById(id);
const plots = { rtt: new Plot($("rtt-plot")), jitter: new Plot($("jitter-plot")), loss: new Plot($("loss-plot")) };
const scope = new Scope($("scope"));
let call = null, stream = null, timer = null;

function notice(html) {
  const box = document.createElement("div");
  box.className = "notice";
  box.innerHTML = html; // only constant texts of this file come here
  $("notices").append(box);
}

function show(state, text) {
  $("state").dataset.state = state;
  $("state").textContent = text;
}

const agentSays = (text) => { $("agent").textContent = text; };

function log(text, kind = "in") {
  const line = document.createElement("li");
  const time = document.createElement("time");
  time.textContent = call ? `${((performance.now() - call.started) / 1000).toFixed(2)} s` : "";
  const words = document.createElement("span");
  words.className = kind;
  words.textContent = text;
  line.append(time, words);
  $("log").prepend(line);
  while ($("log").childElementCount > 200) $("log").lastElementChild.remove();
}

const MOODS = {
  "session.created": "Listening. Say something.",
  "input_audio_buffer.speech_started": "Hearing you…",
  "input_audio_buffer.speech_stopped": "Thinking…",
  "output_audio_buffer.started": "Speaking. Interrupt it if you like.",
  "output_audio_buffer.stopped": "Listening. Say something.",
  "output_audio_buffer.cleared": "Interrupted: listening to you.",
};

function leaving(seconds) {
  const time = seconds < 90 ? `${Math.ceil(seconds)} s` : `${Math.round(seconds / 60)} min`;
  return `This server is being replaced: the call ends within ${time}. Dial again when it suits you.`;
}

function heard(event) {
  if (MOODS[event.type]) agentSays(MOODS[event.type]);
  if (event.type === "voicecluster.draining") notice(leaving(event.seconds_left));
  log(event.type === "error" ? `error: ${event.error?.message}` : event.type, event.type === "error" ? "bad" : "in");
}

async function microphones() {
  const chosen = $("microphone").value;
  const inputs = (await navigator.mediaDevices.enumerateDevices()).filter((device) => device.kind === "audioinput");
  $("microphone").replaceChildren(new Option("Default", ""), ...inputs.filter((device) => device.deviceId)
    .map((device, index) => new Option(device.label || `Microphone ${index + 1}`, device.deviceId)));
  $("microphone").value = chosen;
}

async function regions() {
  const reply = await (await fetch("/v1/realtime/regions")).json();
  $("region").append(...reply.regions.map((name) => new Option(name, name)));
}

async function measure(current) {
  const [quality, debug] = await Promise.all([current.quality(), current.debug().catch(() => null)]);
  if (current !== call) return;
  const put = (name, value, unit, digits) => {
    $(name).textContent = value === null ? "–" : `${value.toFixed(digits)} ${unit}`;
    if (value !== null) plots[name].push(value);
  };
  put("rtt", quality.rttMs, "ms", 1);
  put("jitter", quality.jitterMs, "ms", 1);
  put("loss", quality.lossPercent, "%", 2);
  $("pair").textContent = quality.pair ?? "–";
  if (debug) {
    $("path-client").textContent = debug.client ?? "–";
    $("path-vip").textContent = debug.vip ?? "–";
    $("path-relay").textContent = debug.relay ?? "–";
    $("path-transceiver").textContent = `${debug.transceiver} · ${debug.region}`;
    $("path-worker").textContent = String(debug.worker);
  }
}

function changed(state) {
  log(`connection ${state}`);
  if (state === "connected") show("connected", "Connected");
  else if (state === "failed") end("failed", "Connection failed. Press start to dial again.");
  else if (state === "disconnected") show("connecting", "Reconnecting…");
}

async function start() {
  $("start").disabled = true;
  show("connecting", "Connecting…");
  // iOS lets a page play sound only from a tap: unlock both here, before anything is awaited.
  $("speaker").play().catch(() => null);
  scope.resume();
  try {
    const device = $("microphone").value;
    stream = await navigator.mediaDevices.getUserMedia({
      audio: { deviceId: device ? { exact: device } : undefined, echoCancellation: true, noiseSuppression: true, autoGainControl: true },
    });
    call = new Call({ model: $("model").value, region: $("region").value, key: $("key").value });
    const current = call;
    call.addEventListener("message", ({ detail }) => heard(detail));
    call.addEventListener("sent", ({ detail }) => log(detail.type, "out"));
    call.addEventListener("state", ({ detail }) => current === call && changed(detail));
    call.addEventListener("location", ({ detail }) => { $("call").textContent = detail; });
    call.addEventListener("track", ({ detail }) => { $("speaker").srcObject = detail; scope.theirs(detail); });
    scope.mine(stream);
    await call.start(stream);
    timer = setInterval(() => measure(current).catch(() => null), 1000);
    $("stop").disabled = $("restart").disabled = false;
    microphones();
  } catch (problem) {
    if (problem.status === 401) {
      $("key-field").hidden = false;
      $("key").focus();
    }
    log(problem.message, "bad");
    end("failed", problem.name === "NotAllowedError" ? "The browser gave no microphone: allow it for this page." : problem.message);
  }
}

function end(state, text) {
  clearInterval(timer);
  const ended = call;
  call = null;
  ended?.stop();
  stream?.getTracks().forEach((track) => track.stop());
  scope.silence();
  $("start").disabled = false;
  $("stop").disabled = $("restart").disabled = true;
  show(state, state === "failed" ? "Failed" : "Idle");
  agentSays(text);
}

$("start").onclick = start;
$("stop").onclick = () => end("idle", "Call ended.");
$("restart").onclick = async () => {
  try {
    await call.restart();
    log("ICE restarted", "out");
  } catch (problem) {
    log(problem.message, "bad");
  }
};
addEventListener("pagehide", () => call?.stop());

if (!navigator.mediaDevices) {
  notice("Browsers give no microphone to plain HTTP off loopback. Serve this page over TLS: <code>voicecluster up FILE --address ADDR --tls</code>");
  $("start").disabled = true;
} else {
  microphones().catch(() => null);
}
const onLoopback = /^(localhost|127\.|\[::1\])/.test(location.hostname);
if (onLoopback && navigator.userAgent.includes("Firefox")) {
  notice("Firefox ignores loopback candidates: set <code>media.peerconnection.ice.loopback</code> to <code>true</code> in <code>about:config</code> to call this machine itself.");
}
regions().catch((problem) => log(`no list of regions: ${problem.message}`, "bad"));

// For the console and for tests: the running call, if any.
Object.defineProperty(globalThis, "voicecluster", { value: { get call() { return call; }, Call } });
