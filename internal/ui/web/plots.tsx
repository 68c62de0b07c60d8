// What the replicas of a job used, and the figures in their logs.
import { h } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Chart, type Line } from "./chart";
import type { Job } from "./job";
import { ask, bytes, go, type Place, short, span, withQuery } from "./place";

// useAnswer asks again when the mark changes, but at most once in two seconds, and not twice at a time. It returns the last answer, an error, and the
// path that the answer is for.
export function useAnswer<T>(path: string, mark: string | undefined): [T | null, string, string] {
	const [[value, of], setValue] = useState<[T | null, string]>([null, ""]);
	const [error, setError] = useState("");
	const newest = useRef(mark), look = useRef(() => {});
	newest.current = mark;
	useEffect(() => {
		if (!path) { setValue([null, ""]); return; }
		const control = new AbortController();
		let timer: number | undefined, busy = false, at = 0, known: string | undefined | null = null; // known is the mark of the last question
		look.current = () => {
			if (busy || timer !== undefined || known === newest.current) return;
			timer = window.setTimeout(() => {
				timer = undefined;
				busy = true;
				at = Date.now();
				known = newest.current;
				ask<T>(path, control.signal).then((v) => { setValue([v, path]); setError(""); }).catch((e) => { if (!control.signal.aborted) setError(String(e.message)); })
					.finally(() => { busy = false; if (!control.signal.aborted) look.current(); });
			}, Math.max(0, at + 2000 - Date.now()));
		};
		look.current();
		return () => { clearTimeout(timer); control.abort(); look.current = () => {}; };
	}, [path]);
	useEffect(() => look.current(), [mark]);
	return [value, error, of];
}

type PodUse = { replica: string; attempt: number; gpus: number; times: number[]; cores: number[]; memory: number[]; gpu: number[]; gpuMemory: number[] };

export function Usage({ job, mark }: { job: Job; mark?: string }) {
	const [use, error] = useAnswer<{ pods: PodUse[] }>(`jobs/${encodeURIComponent(job.job.uid)}/usage`, mark);
	if (error) return <div class="error" role="alert">{error}</div>;
	if (!use) return <div class="tab dim">…</div>;
	if (use.pods.length === 0) return <div class="tab dim">Nothing was measured. A pod is measured for the first time after about ten seconds.</div>;
	const began = Date.parse(job.job.created), names = [...new Set(use.pods.map((p) => p.replica))].sort((a, b) => a.localeCompare(b, undefined, { numeric: true }));
	const lines = (of: (p: PodUse) => number[]): Line[] => use.pods.filter((p) => of(p).length > 0).map((p) => ({
		label: p.replica + (job.job.attempts > 1 ? ` (attempt ${p.attempt + 1})` : ""), colour: names.indexOf(p.replica), x: p.times.map((t) => (t - began) / 1000), y: of(p),
	}));
	const gpus = use.pods.reduce((most, p) => Math.max(most, p.gpus), 0);
	return <div class="tab">
		<div class="plots">
			<Chart title="Processors in use" lines={lines((p) => p.cores)} zero xText={span} />
			<Chart title="Memory in use" lines={lines((p) => p.memory)} zero xText={span} yText={bytes} />
			{gpus > 0 && <Chart title="GPUs in use" lines={lines((p) => p.gpu)} zero xText={span} />}
			{gpus > 0 && <Chart title="Memory of GPUs in use" lines={lines((p) => p.gpuMemory)} zero xText={span} yText={bytes} />}
		</div>
		{gpus > 0 && <table><thead><tr><th>Replica</th><th>GPUs it holds</th></tr></thead><tbody>{use.pods.map((p) => <tr><td>{p.replica}, attempt {p.attempt + 1}</td><td>{p.gpus}</td></tr>)}</tbody></table>}
	</div>;
}

type Series = { name: string; steps: (number | null)[]; times: number[]; values: (number | null)[] };
export type Figures = { replicas: string[]; replica: string; runs: { attempt: number; restart: number; series: Series[] }[] };

// byName are the lines of all plots: one plot for each name, a line for each run that has it.
export function byName(figures: Figures, label: (attempt: number, restart: number) => string, colour: number, byTime?: number): Map<string, Line[]> {
	const all = new Map<string, Line[]>();
	figures.runs.forEach((run, i) => run.series.forEach((s) => {
		const line = { label: label(run.attempt, run.restart), colour: colour + i, x: byTime === undefined ? s.steps : s.times.map((t) => (t - byTime) / 1000), y: s.values };
		all.set(s.name, [...(all.get(s.name) ?? []), line]);
	}));
	return all;
}

export function Scalars({ job, at, mark }: { job: Job; at: Place; mark?: string }) {
	const replica = at.query.get("replica") ?? "", overTime = at.query.get("x") === "time";
	const [figures, error] = useAnswer<Figures>(`jobs/${encodeURIComponent(job.job.uid)}/scalars?replica=${encodeURIComponent(replica)}`, mark);
	if (error) return <div class="error" role="alert">{error}</div>;
	if (!figures) return <div class="tab dim">…</div>;
	const plots = byName(figures, (a, r) => `attempt ${a + 1}${r ? ", restart " + r : ""}`, 0, overTime ? Date.parse(job.job.created) : undefined);
	return <div class="tab">
		<div class="bar">
			<label>Log of <select value={figures.replica} onChange={(e) => go(withQuery({ replica: e.currentTarget.value }))}>{figures.replicas.map((r) => <option>{r}</option>)}</select></label>
			<label><input type="checkbox" checked={overTime} onChange={(e) => go(withQuery({ x: e.currentTarget.checked ? "time" : "" }), true)} /> Over time</label>
		</div>
		{plots.size === 0 && <div class="dim">No figures were found in this log. A line such as <code>step 100 loss=0.31</code> is one.</div>}
		<div class="plots">{[...plots].map(([name, lines]) => <Chart key={name} title={name} lines={lines} xText={overTime ? span : short} />)}</div>
	</div>;
}
