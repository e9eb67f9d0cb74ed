// The strip: which head was chosen at each decision, and the return so far below it.

import { colour, ink, number } from "./format.js";

export class Strip {
  constructor(canvas, jump) {
    this.canvas = canvas;
    canvas.addEventListener("click", (event) => {
      if (!this.moment) return;
      const share = event.offsetX / canvas.clientWidth;
      jump(Math.min(Math.floor(share * this.cells()), this.moment.heads.length));
    });
    new ResizeObserver(() => this.moment && this.show(this.moment)).observe(canvas);
  }

  cells() { return Math.max(this.moment.heads.length + (this.moment.ended ? 0 : 1), 8); }

  show(moment) {
    this.moment = moment;
    if (!this.canvas.clientWidth) return; // hidden
    const { canvas } = this, scale = devicePixelRatio || 1, width = canvas.clientWidth;
    const height = canvas.clientHeight, band = 26, cells = this.cells(), step = width / cells;
    canvas.width = width * scale;
    canvas.height = height * scale;
    const pen = canvas.getContext("2d");
    pen.scale(scale, scale);
    pen.fillStyle = "#eef1f5";
    pen.fillRect(0, 0, width, band);
    pen.font = "600 12px system-ui, sans-serif";
    pen.textAlign = "center";
    let from = 0;
    moment.heads.forEach((head, index) => {
      if (step < 6 && moment.heads[index + 1] === head) return; // thin cells are drawn as one
      pen.fillStyle = colour(head);
      pen.fillRect(from * step, 0, (index + 1 - from) * step - (step < 6 ? 0 : 1), band);
      pen.fillStyle = ink(head);
      if ((index + 1 - from) * step > 13) pen.fillText(String(head), ((from + index + 1) / 2) * step, band - 8);
      from = index + 1;
    });
    this.line(pen, moment, step, band + 8, height - 20);
    this.cursor(pen, moment, step, band, height - 18);
  }

  // A frame around the decision shown and a line through the return; the end is a line alone.
  cursor(pen, moment, step, band, bottom) {
    const width = this.canvas.clientWidth, left = moment.index * step;
    const at = Math.min(Math.max(moment.over ? left : left + step / 2, 1), width - 1);
    pen.strokeStyle = "#000";
    pen.lineWidth = 2;
    if (step >= 6 && !moment.over) pen.strokeRect(left + 1, 1, step - 3, band - 2);
    pen.beginPath();
    pen.moveTo(at, step >= 6 && !moment.over ? band : 0);
    pen.lineTo(at, bottom);
    pen.stroke();
  }

  line(pen, moment, step, top, bottom) {
    const { returns } = moment, low = Math.min(...returns, 0), high = Math.max(...returns, 0), span = high - low || 1;
    const y = (value) => bottom - ((value - low) / span) * (bottom - top);
    pen.strokeStyle = "#1a1f26";
    pen.lineWidth = 1.6;
    pen.beginPath();
    returns.forEach((value, index) => pen[index ? "lineTo" : "moveTo"](index * step, y(value)));
    pen.stroke();
    pen.fillStyle = "#5a6472";
    pen.font = "12px system-ui, sans-serif";
    pen.textAlign = "left";
    pen.fillText("return so far", 2, bottom + 16);
    pen.textAlign = "right";
    pen.fillText(number(returns[returns.length - 1]), this.canvas.clientWidth - 2, bottom + 16);
  }
}
