// Attempts and replicas over time. A bar is a pod; a click opens its log.
import { Fragment, h } from "preact";
import { type Job, logID, type Replica } from "./job";
import { go, span } from "./place";

export function Timeline({ job }: { job: Job }) {
	if (job.replicas.length === 0) return <div class="tab dim">No pod has been recorded.</div>;
	const over = !job.running || job.job.ended || job.job.deleted;
	const now = over ? Date.parse(job.job.ended ?? job.job.deleted ?? job.updated) : Date.now();
	const from = Date.parse(job.job.created);
	const to = Math.max(now, from + 1000, ...job.replicas.map((r) => (r.ended ? Date.parse(r.ended) : 0)));
	const percent = (t: number) => (100 * (Math.min(Math.max(t, from), to) - from)) / (to - from) + "%";
	const names = [...new Set(job.replicas.map((r) => r.name))].sort((a, b) => a.localeCompare(b, undefined, { numeric: true }));
	const open = (r: Replica) => {
		const log = job.logs.filter((l) => l.pod === r.pod && l.training).at(-1);
		if (log) go(`/jobs/${job.job.uid}/logs?log=${encodeURIComponent(logID(log))}`);
	};
	return <div class="tab"><div class="gantt">
		<span />
		<div class="scale"><span>0s</span><span>{span((to - from) / 1000)}</span></div>
		{names.map((name) => <>
			<span>{name}</span>
			<div class="lane">{job.replicas.filter((r) => r.name === name).map((r) => <Bars r={r} end={r.ended ? Date.parse(r.ended) : to} percent={percent} open={() => open(r)} />)}</div>
		</>)}
	</div>
	<p class="dim">Green: exited with 0. Red: failed. Blue: runs. Yellow: waited to start. Grey: was stopped. A click opens the log.</p></div>;
}

function Bars(p: { r: Replica; end: number; percent: (t: number) => string; open: () => void }) {
	const { r } = p, created = Date.parse(r.created), started = r.started ? Date.parse(r.started) : p.end;
	const kind = r.exitCode === 0 ? "good" : r.stopped ? "gone" : r.exitCode !== undefined || r.phase === "Failed" ? "bad" : r.ended ? "gone" : "";
	const how = r.stopped ? `was stopped, exited with code ${r.exitCode}` : r.exitCode !== undefined ? `exited with code ${r.exitCode}` : r.ended ? "was stopped" : r.started ? "runs" : "waits";
	const what = `${r.name}, attempt ${r.attempt + 1}, on ${r.node || "no node"}: ${how}${r.reason ? " (" + r.reason + ")" : ""}${r.restarts ? `, ${r.restarts} restarts` : ""}`;
	const style = (a: number, b: number) => ({ left: p.percent(a), width: `calc(${p.percent(b)} - ${p.percent(a)})` });
	return <>
		{started > created && <span class="span wait" style={style(created, started)} title={`${r.name} waited ${span((started - created) / 1000)} to start`} />}
		{r.started && <button class={"span " + kind} style={style(started, p.end)} title={what} aria-label={what} onClick={p.open} />}
	</>;
}
