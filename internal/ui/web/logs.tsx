// The logs of a job, one at a time. Only the lines in view are fetched, and the server searches.
import { Fragment, h } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { type Job, logID, type LogName } from "./job";
import { ask, go, isForPage, type Place, withQuery } from "./place";
import { useAnswer } from "./plots";
import { Virtual } from "./virtual";

type Line = { n: number; t: string; text: string; gap?: boolean; stderr?: boolean };
type Answer = { lines: Line[]; total: number };

const size = 500; // of a page that is fetched

// first is the log to begin with: of the replica that failed first in the last attempt, else of the first replica.
function first(job: Job): LogName | undefined {
	const training = job.logs.filter((l) => l.training), last = Math.max(...training.map((l) => l.attempt));
	const of = training.filter((l) => l.attempt === last);
	const failed = job.replicas.filter((r) => r.attempt === last && !!r.exitCode && !r.stopped).sort((a, b) => Date.parse(a.ended ?? "") - Date.parse(b.ended ?? ""))[0];
	return of.filter((l) => l.pod === failed?.pod).at(-1) ?? of[0] ?? job.logs[0];
}

function label(l: LogName): string {
	return `attempt ${l.attempt + 1} · ${l.replica}${l.training ? "" : " · " + l.container}${l.restart ? " · restart " + l.restart : ""}`;
}

export function Logs(p: { job: Job; at: Place; mark?: string }) {
	const begun = useRef(""); // another attempt does not take the place of what is read
	const named = p.at.query.get("log") ?? begun.current;
	const log = p.job.logs.find((l) => logID(l) === named) ?? first(p.job);
	if (!log) return <div class="tab dim">Nothing was written yet.</div>;
	begun.current = logID(log);
	return <LogView key={logID(log)} job={p.job} log={log} at={p.at} mark={p.mark} />;
}

function LogView(p: { job: Job; log: LogName; at: Place; mark?: string }) {
	const id = logID(p.log), path = `jobs/${encodeURIComponent(p.job.job.uid)}`, which = "log=" + encodeURIComponent(id);
	const line = p.at.query.has("line") ? Number(p.at.query.get("line")) - 1 : -1;
	const q = p.at.query.get("find") ?? "";
	const [total, setTotal] = useState(0);
	const [error, setError] = useState("");
	const [follow, setFollow] = useState(line < 0);
	const [sought, setSought] = useState(q);
	const [jump, setJump] = useState(0);
	const [, redraw] = useState(0);
	const pages = useRef(new Map<number, Line[]>());
	const asked = useRef(new Set<number>());
	const visible = useRef<[number, number]>([0, 50]);

	const fetchPage = (n: number) => {
		if (asked.current.has(n)) return;
		asked.current.add(n);
		ask<Answer>(`${path}/log?${which}&from=${n * size}&limit=${size}`).then((a) => {
			pages.current.set(n, a.lines);
			if (pages.current.size > 20) { // far from the view
				const far = [...pages.current.keys()].sort((x, y) => Math.abs(y - n) - Math.abs(x - n))[0];
				pages.current.delete(far);
			}
			setTotal(a.total);
			setError("");
			redraw((i) => i + 1);
		}).catch((e) => setError(String(e.message))).finally(() => asked.current.delete(n));
	};
	const fetchVisible = (again: boolean) => {
		for (let n = Math.floor(visible.current[0] / size); n <= Math.floor(visible.current[1] / size); n++) if (again || !pages.current.has(n)) fetchPage(n);
	};
	useEffect(() => {
		// Only the last page can have changed, and what follows it.
		const last = Math.floor(Math.max(0, total - 1) / size);
		pages.current.delete(last);
		fetchPage(last);
		fetchVisible(false);
	}, [p.mark]);
	useEffect(() => { if (line >= 0) setFollow(false); }, [line]);
	useEffect(() => { const typed = setTimeout(() => setSought(q), 200); return () => clearTimeout(typed); }, [q]);
	const search = sought ? `${path}/search?${which}&q=${encodeURIComponent(sought)}` : "";
	const [lines, searchError, of] = useAnswer<{ lines: number[]; more: boolean }>(search, String(total)); // again when lines come
	const found = q && q === sought && of === search ? lines : null;
	const show = (n: number) => {
		setFollow(false);
		go(withQuery({ log: id, line: String(n + 1) }), true);
		setJump((i) => i + 1);
	};
	const next = (step: number) => {
		const lines = found?.lines ?? [];
		const to = step > 0 ? lines.find((n) => n > line) ?? lines[0] : [...lines].reverse().find((n) => n < line) ?? lines.at(-1);
		if (to !== undefined) show(to);
	};
	useLayoutEffect(() => { // before the next key
		const key = (e: KeyboardEvent) => {
			if (!isForPage(e)) return;
			if (e.key === "n") next(1);
			else if (e.key === "p") next(-1);
			else if (e.key === "g") show(0);
			else if (e.key === "G") setFollow(true);
		};
		addEventListener("keydown", key);
		return () => removeEventListener("keydown", key);
	}, [found, line]);
	const hits = useMemo(() => new Set(found?.lines ?? []), [found]);
	const row = (i: number) => {
		const page = pages.current.get(Math.floor(i / size));
		const l = page?.find((x) => x.n === i);
		if (!l) return <div key={i}><span class="no">{i + 1}</span>{!page ? "…" : page.some((x) => x.n > i) ? <span class="dim">not kept</span> : ""}</div>;
		return <div key={i} class={(i === line ? "here " : "") + (hits.has(i) ? "hit " : "") + (l.gap ? "gap" : "")}>
			<a class="no" href={withQuery({ log: id, line: String(i + 1) })}>{i + 1}</a>
			<span class="at">{new Date(l.t).toLocaleTimeString()}</span>
			<Coloured text={l.text} />
		</div>;
	};
	return <>
		<div class="bar">
			<select aria-label="Log" value={id} onChange={(e) => go(withQuery({ log: e.currentTarget.value, line: "" }))}>{p.job.logs.map((l) => <option value={logID(l)}>{label(l)}</option>)}</select>
			<input type="search" aria-label="Search the log" placeholder="Search the whole log ( / )" value={q} onInput={(e) => go(withQuery({ find: e.currentTarget.value }), true)}
				onKeyDown={(e) => { if (e.key === "Enter") next(e.shiftKey ? -1 : 1); }} />
			{found && <span role="status">{found.more ? "more than " : ""}{found.lines.length} {found.lines.length === 1 ? "line" : "lines"}</span>}
			{found && found.lines.length > 0 && <><button onClick={() => next(-1)}>Previous</button><button onClick={() => next(1)}>Next</button></>}
			<span class="dim">{total} {total === 1 ? "line" : "lines"}</span>
			<label><input type="checkbox" checked={follow} onChange={(e) => setFollow(e.currentTarget.checked)} /> Follow</label>
			<a href={`/api/v1/${path}/whole-log?${which}`} download>Download</a>
		</div>
		{(error || searchError) && <div class="error" role="alert">{error || searchError}</div>}
		<Virtual class="log" label="Lines of the log" total={total} rowHeight={18} row={row} show={line} jump={jump + " " + line} end={follow} scrolled={setFollow}
			range={(a, b) => { visible.current = [a, b]; fetchVisible(false); }} />
	</>;
}

// Coloured is a line with the colours that a terminal would show. All of it is text, never HTML.
function Coloured({ text }: { text: string }) {
	if (!text.includes("\x1b")) return <span>{text}</span>;
	const parts = [];
	let style = new Map<string, string>();
	for (const piece of text.split(/(\x1b\[[0-9;:]*m)/)) {
		const codes = /^\x1b\[([0-9;:]*)m$/.exec(piece);
		if (!codes) {
			if (piece) parts.push(<span class={[...style.values()].join(" ")}>{piece}</span>);
			continue;
		}
		style = new Map(style);
		const all = (codes[1] || "0").split(";");
		for (let i = 0; i < all.length; i++) {
			const code = Number(all[i].split(":")[0]);
			if (code === 38 || code === 48) { // one of 256 colours, or of all; it has arguments
				const of = all[i].includes(":") ? -1 : Number(all[i + 1]), n = Number(all[i + 2]);
				if (code === 38) style.delete("f");
				if (code === 38 && of === 5 && n < 16) style.set("f", "f" + (n % 8));
				i += of === 5 ? 2 : of === 2 ? 4 : 0;
			} else if (code === 0) style.clear();
			else if ([1, 2, 3, 4, 7].includes(code)) style.set("a" + code, "a" + code);
			else if (code >= 30 && code <= 37) style.set("f", "f" + (code - 30));
			else if (code >= 90 && code <= 97) style.set("f", "f" + (code - 90));
			else if (code === 39) style.delete("f");
			else if (code === 22) { style.delete("a1"); style.delete("a2"); }
			else if (code === 23 || code === 24 || code === 27) style.delete("a" + (code - 20));
		}
	}
	return <span>{parts}</span>;
}
