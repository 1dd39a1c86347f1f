// Canvas drawing: a small time series, and the two voices of a call over each other.

const ink = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** The last two minutes of one number, from zero up. */
export class Plot {
  constructor(canvas) {
    this.canvas = canvas;
    this.values = [];
  }

  push(value) {
    this.values.push(value);
    if (this.values.length > 120) this.values.shift();
    const { width, height } = this.canvas;
    const pen = this.canvas.getContext("2d");
    const top = Math.max(...this.values, 1) * 1.1;
    const step = width / 119;
    pen.clearRect(0, 0, width, height);
    pen.strokeStyle = ink("--accent");
    pen.lineWidth = 2;
    pen.beginPath();
    this.values.forEach((entry, index) => pen.lineTo(index * step, height - 2 - (entry / top) * (height - 4)));
    pen.stroke();
  }
}

/** Both voices as bars around a middle line: ours in the accent colour above, theirs below. */
export class Scope {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = null;
    this.voices = {};
    this.levels = { mine: [], theirs: [] };
    this.frame = this.frame.bind(this);
    requestAnimationFrame(this.frame);
  }

  resume() {
    this.context ??= new AudioContext();
    this.context.resume();
  }

  #listen(name, stream) {
    this.resume();
    const analyser = this.context.createAnalyser();
    analyser.fftSize = 512;
    this.context.createMediaStreamSource(stream).connect(analyser);
    this.voices[name] = { analyser, samples: new Float32Array(analyser.fftSize) };
  }

  mine(stream) { this.#listen("mine", stream); }

  theirs(stream) { this.#listen("theirs", stream); }

  silence() { this.voices = {}; }

  #level(name) {
    const voice = this.voices[name];
    if (!voice) return 0;
    voice.analyser.getFloatTimeDomainData(voice.samples);
    const power = voice.samples.reduce((sum, sample) => sum + sample * sample, 0) / voice.samples.length;
    return Math.min(1, Math.sqrt(power) * 5);
  }

  frame() {
    const { width, height } = this.canvas;
    const pen = this.canvas.getContext("2d");
    const bars = 80;
    const middle = height / 2;
    pen.clearRect(0, 0, width, height);
    for (const [name, colour, direction] of [["mine", "--accent", -1], ["theirs", "--good", 1]]) {
      const levels = this.levels[name];
      levels.push(this.#level(name));
      if (levels.length > bars) levels.shift();
      pen.fillStyle = ink(colour);
      levels.forEach((level, index) => {
        const length = 2 + level * (middle - 6);
        pen.fillRect((index + bars - levels.length) * (width / bars) + 1, direction < 0 ? middle - length - 1 : middle + 1, width / bars - 3, length);
      });
    }
    requestAnimationFrame(this.frame);
  }
}
