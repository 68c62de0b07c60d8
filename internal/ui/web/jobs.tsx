// The page of all jobs.
import { h } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { ago, ask, duration, go, isForPage, type Place, span, withQuery } from "./place";
import { Virtual } from "./virtual";

export type Row = {
	namespace: string; uid: string; kind: string; name: string; created: string; outcome: string; seconds: number; message?: string;
	replicas: number; attempts: number; retries?: number; disruptions?: number; started?: string; ended?: string; deleted?: string;
};
type Page = { jobs: Row[]; total: number; states: Record<string, number>; running: boolean };

const size = 200; // of a page that is fetched

export function JobsPage(p: { at: Place; mark?: string }) {
	const q = p.at.query.get("q") ?? "", state = p.at.query.get("state") ?? "";
	const [about, setAbout] = useState<Page | null>(null);
	const [error, setError] = useState("");
	const [selected, setSelected] = useState(-1);
	const [jump, setJump] = useState(0);
	const [, redraw] = useState(0);
	const pages = useRef(new Map<number, Row[]>());
	const visible = useRef<[number, number]>([0, 50]);
	const control = useRef(new AbortController()); // of the questions for the present filter
	const focus = useRef(false); // the selected row gets the focus when it is drawn
	const filter = `q=${encodeURIComponent(q)}&state=${encodeURIComponent(state)}`;

	const fetchPages = (signal: AbortSignal, again: boolean) => {
		const [first, last] = visible.current;
		for (let n = Math.floor(first / size); n <= Math.floor(last / size); n++) {
			if (!again && pages.current.has(n)) continue;
			ask<Page>(`jobs?${filter}&from=${n * size}&limit=${size}`, signal).then((page) => {
				pages.current.set(n, page.jobs);
				setAbout(page);
				setError("");
				redraw((i) => i + 1);
			}).catch((e) => { if (!signal.aborted) setError(String(e.message)); });
		}
	};
	useEffect(() => {
		const own = control.current = new AbortController();
		return () => own.abort();
	}, [filter]);
	useEffect(() => {
		for (const n of [...pages.current.keys()]) if (n !== Math.floor(visible.current[0] / size)) pages.current.delete(n);
		fetchPages(control.current.signal, true);
	}, [filter, p.mark]);
	useEffect(() => { setSelected(-1); }, [filter]);
	const at = (i: number) => pages.current.get(Math.floor(i / size))?.[i % size];
	const total = about?.total ?? 0;
	useLayoutEffect(() => { // before the next key
		const key = (e: KeyboardEvent) => {
			if (!isForPage(e)) return;
			const to = e.key === "j" ? selected + 1 : e.key === "k" ? selected - 1 : -1;
			if (to >= 0 && to < total) { focus.current = true; setSelected(to); setJump((n) => n + 1); }
			const job = at(selected);
			if (e.key === "Enter" && job && !(e.target as Element).closest?.("a, button")) go("/jobs/" + job.uid);
		};
		addEventListener("keydown", key);
		return () => removeEventListener("keydown", key);
	}, [selected, total]);
	const row = (i: number) => {
		const job = at(i);
		if (!job) return <div class="job dim" key={i}>…</div>;
		return <a class={"job" + (i === selected ? " selected" : "")} href={"/jobs/" + job.uid} key={i}
			ref={(a: HTMLElement | null) => { if (a && i === selected && focus.current) { focus.current = false; a.focus({ preventScroll: true }); } }}>
			<span title={job.namespace + "/" + job.name}>{job.namespace === "default" ? "" : job.namespace + "/"}{job.name}</span>
			<span class={job.outcome}>{job.outcome}</span>
			<span>{job.kind}</span>
			<span>{job.replicas}</span>
			<span>{job.attempts}</span>
			<span>{job.seconds ? span(duration(job, about?.running ?? false)) : ""}</span>
			<span>{ago(job.created)}</span>
			<span class="dim" title={job.message}>{job.message}</span>
		</a>;
	};
	return <main>
		<div class="bar">
			<input type="search" aria-label="Search jobs" placeholder="Search by name, kind, namespace or ID ( / )" value={q} onInput={(e) => go(withQuery({ q: e.currentTarget.value }), true)} />
			{Object.entries(about?.states ?? {}).sort().map(([name, n]) =>
				<button class="chip" aria-pressed={state === name} onClick={() => go(withQuery({ state: state === name ? "" : name }), true)}><span class={name}>{name}</span> {n}</button>)}
		</div>
		{about && !about.running && <div class="notice">The local cluster is not running. `trainyard up` starts it.</div>}
		{error && <div class="error" role="alert">{error}</div>}
		<div class="job head"><span>Name</span><span>Outcome</span><span>Kind</span><span>Replicas</span><span>Attempts</span><span>Duration</span><span>Age</span><span>Message</span></div>
		{about && total === 0 ? <div class="dim">There are no such jobs.</div> :
			<Virtual label="Jobs" total={total} rowHeight={34} row={row} show={selected} jump={jump} range={(first, last) => {
				visible.current = [first, last];
				fetchPages(control.current.signal, false);
			}} />}
	</main>;
}
