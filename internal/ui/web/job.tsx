// The page of one job.
import { Fragment, h } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Actions } from "./actions";
import type { Marks } from "./app";
import type { Row } from "./jobs";
import { Logs } from "./logs";
import { ask, duration, type Place, span } from "./place";
import { Scalars, Usage } from "./plots";
import { useTick } from "./tick";
import { Timeline } from "./timeline";

export type Replica = {
	name: string; attempt: number; pod: string; node: string; phase: string; created: string; started?: string; ended?: string; exitCode?: number; stopped?: boolean; reason?: string; restarts: number;
};
export type LogName = { attempt: number; replica: string; container: string; restart: number; pod: string; training: boolean };
export type Job = {
	job: Row; why: string; ready: string; retryLimit: number | null; updated: string; running: boolean; manifest: string;
	attempts: { number: number; start?: string; end?: string; reason?: string; message?: string }[] | null;
	actions: string[]; roles: { name: string; replicas: number }[];
	replicas: Replica[]; logs: LogName[]; events: { time: string; who: string; warning: boolean; text: string; times: number }[];
};

export const logID = (l: LogName) => `${l.attempt}/${l.replica}/${l.container}.${l.restart}.${l.pod}`;

const tabs = ["overview", "timeline", "logs", "usage", "scalars", "events", "manifest"];

export function JobPage(p: { at: Place; marks: Marks }) {
	const [job, setJob] = useState<Job | null>(null);
	const [error, setError] = useState("");
	const ticks = useTick(30); // what "why" says has times
	useEffect(() => {
		const control = new AbortController();
		ask<Job>("jobs/" + encodeURIComponent(p.at.uid), control.signal).then((j) => { setJob(j); setError(""); }).catch((e) => { if (!control.signal.aborted) setError(String(e.message)); });
		return () => control.abort();
	}, [p.at.uid, p.marks.job, job && job.running && !job.job.ended && !job.job.deleted ? ticks : 0]);
	useEffect(() => { document.title = job ? job.job.name + " · Trainyard" : "Trainyard"; return () => { document.title = "Trainyard"; }; }, [job?.job.name]);
	if (!job) return <main>{error ? <div class="error" role="alert">{error}</div> : <div class="dim">…</div>}</main>;
	const base = "/jobs/" + job.job.uid;
	return <main>
		<div class="bar">
			<h2 style={{ margin: 0 }}>{job.job.name}</h2>
			<span class={"chip " + job.job.outcome}>{job.job.outcome}</span>
			<span class="dim">{job.job.kind} in {job.job.namespace}</span>
			{job.job.deleted && <span class="chip Deleted">deleted</span>}
			<span class="space" />
			<Actions job={job} />
			<a href={"/compare?a=" + encodeURIComponent(job.job.uid)}>Compare</a>
		</div>
		{error && <div class="error" role="alert">{error}</div>}
		<nav aria-label="Views">{tabs.map((t) => <a href={t === "overview" ? base : base + "/" + t} aria-current={p.at.tab === t ? "page" : undefined}>{t[0].toUpperCase() + t.slice(1)}</a>)}</nav>
		{p.at.tab === "timeline" ? <Timeline job={job} /> :
			p.at.tab === "logs" ? <Logs job={job} at={p.at} mark={p.marks.logs} /> :
			p.at.tab === "usage" ? <Usage job={job} mark={p.marks.usage} /> :
			p.at.tab === "scalars" ? <Scalars job={job} at={p.at} mark={p.marks.logs} /> :
			p.at.tab === "events" ? <Events job={job} /> :
			p.at.tab === "manifest" ? <Manifest job={job} /> :
			<Overview job={job} />}
	</main>;
}

function Overview({ job }: { job: Job }) {
	const facts: [string, string][] = [
		["Duration", job.job.seconds ? span(duration(job.job, job.running)) : "–"], ["Ready", job.ready || "–"], ["Attempts", String(job.job.attempts)],
		["Retries", (job.job.retries ?? 0) + (job.retryLimit === null ? "" : " of " + job.retryLimit)], ["Disruptions", String(job.job.disruptions ?? 0)],
		["Created", new Date(job.job.created).toLocaleString()],
	];
	return <div class="tab">
		{!job.running && <div class="notice">The local cluster is not running. This is what was recorded until {new Date(job.updated).toLocaleString()}.</div>}
		<pre class="notice" id="why">{job.why.trim()}</pre>
		<div class="facts">{facts.map(([name, value]) => <div><span class="dim">{name}</span><b>{value}</b></div>)}</div>
		<table>
			<thead><tr><th>Attempt</th><th>Began</th><th>Took</th><th>Why it ended</th></tr></thead>
			<tbody>{(job.attempts ?? []).map((a) => <tr>
				<td>{a.number + 1}</td><td>{a.start ? new Date(a.start).toLocaleTimeString() : ""}</td>
				<td>{a.start && a.end ? span((Date.parse(a.end) - Date.parse(a.start)) / 1000) : ""}</td><td>{(a.message ?? "").split("\n")[0] || a.reason || "it has not ended"}</td>
			</tr>)}</tbody>
		</table>
	</div>;
}

function Events({ job }: { job: Job }) {
	const began = Date.parse(job.job.created);
	if (job.events.length === 0) return <div class="tab dim">There are no events.</div>;
	return <div class="tab"><table>
		<thead><tr><th>After</th><th>Who</th><th>What</th></tr></thead>
		<tbody>{job.events.map((e) => <tr class={e.warning ? "Failed" : ""}>
			<td title={e.time}>+{span((Date.parse(e.time) - began) / 1000)}</td><td>{e.who}</td><td>{e.text}{e.times > 1 ? ` (${e.times} times)` : ""}</td>
		</tr>)}</tbody>
	</table></div>;
}

function Manifest({ job }: { job: Job }) {
	const [copied, setCopied] = useState(false);
	return <div class="tab">
		<div class="bar"><button onClick={() => navigator.clipboard.writeText(job.manifest).then(() => setCopied(true))}>{copied ? "Copied" : "Copy"}</button>
			<span class="dim">What looks like a secret is masked. `trainyard run -f` runs it again.</span></div>
		<pre>{job.manifest}</pre>
	</div>;
}
