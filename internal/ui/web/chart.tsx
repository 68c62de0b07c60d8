// A plot of a few lines. Points that are missing interrupt a line.
import { h } from "preact";
import { useRef, useState } from "preact/hooks";
import { short } from "./place";

export type Line = { label: string; colour: number; x: (number | null)[]; y: (number | null)[] };

// The picture has its own units; the browser scales it to the page.
const width = 600, height = 180, left = 56, bottom = 20, top = 8, right = 8;

function range(values: (number | null)[], zero: boolean): [number, number] {
	let low = zero ? 0 : Infinity, high = -Infinity;
	for (const v of values) if (v !== null) { low = Math.min(low, v); high = Math.max(high, v); }
	if (high === -Infinity) return [0, 1];
	return low === high ? [low - (Math.abs(low) || 1) / 2, high + (Math.abs(high) || 1) / 2] : [low, high];
}

// pieces are the parts of a line between missing points.
function pieces(line: Line, px: (x: number) => number, py: (y: number) => number): string[] {
	const all: string[] = [];
	let one: string[] = [];
	line.y.forEach((y, i) => {
		const x = line.x[i];
		if (y !== null && x !== null) one.push(px(x).toFixed(1) + "," + py(y).toFixed(1));
		else if (one.length > 0) { all.push(one.join(" ")); one = []; }
	});
	if (one.length > 0) all.push(one.join(" "));
	return all.map((p) => (p.includes(" ") ? p : p + " " + p)); // a single point is a dot
}

export function Chart(p: { title: string; lines: Line[]; zero?: boolean; xText: (x: number) => string; yText?: (y: number) => string }) {
	const box = useRef<SVGSVGElement>(null);
	const [at, setAt] = useState<number | null>(null);
	const yText = p.yText ?? short;
	const [x0, x1] = range(p.lines.flatMap((l) => l.x), false), [y0, y1] = range(p.lines.flatMap((l) => l.y), !!p.zero);
	const px = (x: number) => left + ((x - x0) / (x1 - x0)) * (width - left - right);
	const py = (y: number) => height - bottom - ((y - y0) / (y1 - y0)) * (height - bottom - top);
	// nearest is the point of a line that is next to the pointer.
	const nearest = (l: Line): number => {
		let best = -1;
		l.x.forEach((x, i) => { if (x !== null && (best < 0 || Math.abs(x - at!) < Math.abs(l.x[best]! - at!))) best = i; });
		return best;
	};
	const move = (e: PointerEvent) => {
		const r = box.current!.getBoundingClientRect(), inside = ((e.clientX - r.left) / r.width) * width;
		setAt(x0 + ((Math.min(Math.max(inside, left), width - right) - left) / (width - left - right)) * (x1 - x0));
	};
	return <section class="plot" aria-label={p.title}>
		<h3>{p.title}</h3>
		<svg ref={box} viewBox={`0 0 ${width} ${height}`} role="img" aria-label={`Plot of ${p.title}`} onPointerMove={move} onPointerLeave={() => setAt(null)}>
			{[y0, (y0 + y1) / 2, y1].map((y) => <g>
				<line class="axis" x1={left} x2={width - right} y1={py(y)} y2={py(y)} />
				<text x={left - 6} y={py(y) + 4} text-anchor="end">{yText(y)}</text>
			</g>)}
			<text x={left} y={height - 5}>{p.xText(x0)}</text>
			<text x={width - right} y={height - 5} text-anchor="end">{p.xText(x1)}</text>
			{p.lines.map((l) => pieces(l, px, py).map((points) => <polyline class={"s" + (l.colour % 8)} points={points} />))}
			{at !== null && <line class="cursor" x1={px(at)} x2={px(at)} y1={top} y2={height - bottom} />}
		</svg>
		<div class="said">{p.lines.map((l) => {
			const i = at === null ? l.y.length - 1 : nearest(l), y = l.y[i];
			return <span><b class={"s" + (l.colour % 8)}>{l.label}</b> {y === undefined ? "" : y === null ? "not a number" : yText(y)}{at !== null && i >= 0 ? ` at ${p.xText(l.x[i] ?? 0)}` : ""} </span>;
		})}</div>
	</section>;
}
