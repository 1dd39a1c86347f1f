// The test's mouth and ears inside the page: feeds speech in place of the microphone, records what the agent says.
// All times are the page's clock (performance.now(), milliseconds).
(() => {
  const context = new AudioContext({ sampleRate: 48000 });
  const microphone = context.createMediaStreamDestination();
  // Without a constant inaudible tone a browser may stop sending while the feed is silent.
  const hum = context.createConstantSource();
  hum.offset.value = 1e-5;
  hum.connect(microphone);
  hum.start();
  let speech = null;
  let held = null;
  const heard = [];

  const recorder = context.createScriptProcessor(256, 1, 1);
  recorder.onaudioprocess = (event) => {
    const samples = event.inputBuffer.getChannelData(0);
    let power = 0;
    const kept = new Int16Array(samples.length / 2); // 24 kHz is plenty for speech
    for (let i = 0; i < samples.length; i += 1) power += samples[i] * samples[i];
    for (let i = 0; i < kept.length; i += 1) kept[i] = Math.max(-1, Math.min(1, (samples[2 * i] + samples[2 * i + 1]) / 2)) * 32767;
    heard.push({ at: performance.now(), level: Math.sqrt(power / samples.length), samples: kept });
  };
  recorder.connect(context.destination);

  globalThis.ears = {
    async load(base64) {
      await context.resume();
      const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
      speech = await context.decodeAudioData(bytes.buffer);
      return speech.duration;
    },
    /** The page asks for the microphone as ever (Firefox gathers all addresses only then) and gets the feed. */
    replaceMicrophone() {
      const ask = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
      navigator.mediaDevices.getUserMedia = async (wanted) => {
        held = await ask(wanted);
        return microphone.stream.clone();
      };
    },
    /** Say the loaded speech once; resolves with the time of its first sample. */
    say() {
      const source = context.createBufferSource();
      source.buffer = speech;
      source.connect(microphone);
      const start = context.currentTime + 0.02;
      source.start(start);
      return performance.now() + (start - context.currentTime) * 1000;
    },
    listen(stream) {
      context.createMediaStreamSource(stream).connect(recorder);
    },
    forget() { heard.length = 0; },
    /** The loudness (RMS) since `since`, as [time, level] pairs. */
    levels(since = 0) {
      return heard.filter((block) => block.at >= since).map((block) => [block.at, block.level]);
    },
    /** Resolves with the time at which the agent was first louder than `level` after `since`. */
    loud(level, since = 0) {
      return new Promise((resolve) => {
        const look = () => {
          const block = heard.find((entry) => entry.at >= since && entry.level > level);
          if (block) resolve(block.at); else setTimeout(look, 10);
        };
        look();
      });
    },
    /** Resolves with the time of the last loud block once `quiet` milliseconds have passed without one. */
    quietFor(quiet, level) {
      return new Promise((resolve) => {
        const look = () => {
          const last = heard.findLast((entry) => entry.level > level);
          if (last && performance.now() - last.at > quiet) resolve(last.at); else setTimeout(look, 10);
        };
        look();
      });
    },
    /** All that was recorded since `since`: 16-bit samples at 24 kHz, base64. */
    recording(since = 0) {
      const blocks = heard.filter((block) => block.at >= since);
      let binary = "";
      for (const block of blocks) binary += String.fromCharCode(...new Uint8Array(block.samples.buffer));
      return btoa(binary);
    },
  };
})()
