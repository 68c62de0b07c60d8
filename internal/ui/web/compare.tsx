// Two jobs side by side: outcomes, manifests and figures.
import { h } from "preact";
import { useState } from "preact/hooks";
import { Chart, type Line } from "./chart";
import type { Job } from "./job";
import type { Row } from "./jobs";
import { ago, go, type Place, short, span, withQuery } from "./place";
import { byName, type Figures, useAnswer } from "./plots";

const path = (uid: string) => (uid ? "jobs/" + encodeURIComponent(uid) : "");

export function ComparePage({ at, mark }: { at: Place; mark?: string }) {
	const a = at.query.get("a") ?? "", b = at.query.get("b") ?? "";
	const [first, firstError] = useAnswer<Job>(path(a), mark), [second, secondError] = useAnswer<Job>(path(b), mark);
	const error = firstError || secondError;
	if (error) return <main><div class="error" role="alert">{error}</div></main>;
	if (!a) return <main><div class="notice">Open a job and choose Compare there.</div></main>;
	if (!first) return <main><div class="dim">…</div></main>;
	if (!b) return <Choose key={a} job={first} q={at.query.get("q") ?? first.job.name} mark={mark} />;
	if (!second) return <main><div class="dim">…</div></main>;
	return <main>
		<h2 style={{ margin: 0 }}>{first.job.name} and {second.job.name}</h2>
		<div class="tab">
			<Outcomes jobs={[first, second]} />
			<Plots a={first} b={second} mark={mark} />
			<Difference a={first.manifest} b={second.manifest} />
		</div>
	</main>;
}

// Choose lets a person choose the other job, at first among those of the same name.
function Choose({ job, q: begin, mark }: { job: Job; q: string; mark?: string }) {
	const [q, setQ] = useState(begin);
	const [page] = useAnswer<{ jobs: Row[] }>(`jobs?limit=50&q=${encodeURIComponent(q)}`, mark);
	const others = (page?.jobs ?? []).filter((r) => r.uid !== job.job.uid);
	return <main>
		<h2 style={{ margin: 0 }}>Compare {job.job.name}, {ago(job.job.created)} old, with</h2>
		<div class="bar"><input type="search" aria-label="Search jobs" value={q} onInput={(e) => { setQ(e.currentTarget.value); go(withQuery({ q: e.currentTarget.value }), true); }} /></div>
		{page && others.length === 0 && <div class="dim">There are no other such jobs.</div>}
		<div class="tab"><table><tbody>{others.map((r) => <tr>
			<td><a href={withQuery({ b: r.uid, q: "" })}>{r.name}</a></td><td class={r.outcome}>{r.outcome}</td><td>{ago(r.created)} old</td><td>{r.seconds ? span(r.seconds) : ""}</td>
		</tr>)}</tbody></table></div>
	</main>;
}

function Outcomes({ jobs }: { jobs: Job[] }) {
	const rows: [string, (j: Job) => string | number][] = [
		["Created", (j) => new Date(j.job.created).toLocaleString()], ["Outcome", (j) => j.job.outcome], ["Duration", (j) => (j.job.seconds ? span(j.job.seconds) : "–")],
		["Replicas", (j) => j.job.replicas], ["Attempts", (j) => j.job.attempts], ["Retries", (j) => j.job.retries ?? 0], ["Disruptions", (j) => j.job.disruptions ?? 0],
	];
	return <table>
		<thead><tr><th /><th><a href={"/jobs/" + jobs[0].job.uid}><b class="s0">{jobs[0].job.name}</b></a></th><th><a href={"/jobs/" + jobs[1].job.uid}><b class="s1">{jobs[1].job.name}</b></a></th></tr></thead>
		<tbody>{rows.map(([name, of]) => <tr><td class="dim">{name}</td>{jobs.map((j) => <td>{of(j)}</td>)}</tr>)}</tbody>
	</table>;
}

function Plots({ a, b, mark }: { a: Job; b: Job; mark?: string }) {
	const [left] = useAnswer<Figures>(path(a.job.uid) + "/scalars", mark), [right] = useAnswer<Figures>(path(b.job.uid) + "/scalars", mark);
	if (!left || !right) return <div class="dim">…</div>;
	const plots = new Map<string, Line[]>();
	[left, right].forEach((figures, i) => {
		const job = i === 0 ? a : b, word = a.job.name === b.job.name ? `${job.job.name}, ${ago(job.job.created)} old` : job.job.name;
		for (const [name, lines] of byName(figures, (attempt) => word + (job.job.attempts > 1 ? `, attempt ${attempt + 1}` : ""), 0)) {
			plots.set(name, [...(plots.get(name) ?? []), ...lines.map((l) => ({ ...l, colour: i }))]);
		}
	});
	return <div class="plots">{[...plots].map(([name, lines]) => <Chart key={name} title={name} lines={lines} xText={short} />)}</div>;
}

// Difference shows the lines that only one of two texts has, among those around them.
function Difference(p: { a: string; b: string }) {
	if (p.a === p.b) return <div class="notice">The manifests are the same.</div>;
	return <pre class="notice" id="difference">{difference(p.a.split("\n"), p.b.split("\n")).map(([sign, line]) => <div class={sign === "+" ? "added" : sign === "-" ? "removed" : ""}>{sign} {line}</div>)}</pre>;
}

// difference is the shortest way from a to b, by the longest common subsequence of their lines.
function difference(a: string[], b: string[]): [string, string][] {
	const length = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
	for (let i = a.length - 1; i >= 0; i--) for (let j = b.length - 1; j >= 0; j--) length[i][j] = a[i] === b[j] ? length[i + 1][j + 1] + 1 : Math.max(length[i + 1][j], length[i][j + 1]);
	const out: [string, string][] = [];
	let i = 0, j = 0;
	while (i < a.length || j < b.length) {
		if (i < a.length && j < b.length && a[i] === b[j]) { out.push([" ", a[i]]); i++; j++; }
		else if (j >= b.length || (i < a.length && length[i + 1][j] >= length[i][j + 1])) out.push(["-", a[i++]]);
		else out.push(["+", b[j++]]);
	}
	return out;
}
