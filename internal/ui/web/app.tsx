// The dashboard: one program for all pages. The path and query of the page say everything that it shows, so that every view has a link.
import { Fragment, h, render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { CapacityPage } from "./capacity";
import { ComparePage } from "./compare";
import { JobPage } from "./job";
import { JobsPage } from "./jobs";
import { ask, go, isForPage, type Place, place } from "./place";
import { useTick } from "./tick";

// Marks are fingerprints of what the server has: of the list of jobs, of one job, of its logs and its usage.
export type Marks = { jobs?: string; job?: string; logs?: string; usage?: string };

// useMarks follows the server by one stream, which is closed while the page is hidden: a browser has six connections to a server.
function useMarks(uid: string): Marks & { lost: boolean } {
	const [marks, setMarks] = useState<Marks>({});
	const [lost, setLost] = useState(false);
	useEffect(() => {
		let source: EventSource | null = null;
		const follow = () => {
			source?.close();
			source = null;
			if (document.hidden) return;
			source = new EventSource("/api/v1/stream" + (uid ? "?job=" + encodeURIComponent(uid) : ""));
			source.onmessage = (e) => { setLost(false); setMarks(JSON.parse(e.data)); };
			source.onerror = () => setLost(true);
		};
		follow();
		document.addEventListener("visibilitychange", follow);
		return () => { document.removeEventListener("visibilitychange", follow); source?.close(); };
	}, [uid]);
	return { ...marks, lost };
}

function useTheme(): [string, () => void] {
	const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
	const [theme, setTheme] = useState(localStorage.getItem("theme") ?? system);
	useEffect(() => { document.documentElement.dataset.theme = theme; }, [theme]);
	const next = theme === "dark" ? "light" : "dark";
	return [next, () => { localStorage.setItem("theme", next); setTheme(next); }];
}

const keys = [["/", "search"], ["j k", "next and previous job"], ["Enter", "open it"], ["n p", "next and previous line found in a log"], ["g G", "beginning and end of a log"], ["u", "back to the jobs"], ["?", "this list"]];

function Help(props: { close: () => void }) {
	return <dialog ref={(d) => { if (d && !d.open) d.showModal(); }} onClose={props.close}>
		<table>{keys.map(([key, what]) => <tr><td>{key.split(" ").map((k) => <kbd>{k}</kbd>)}</td><td>{what}</td></tr>)}</table>
		<form method="dialog"><button>Close</button></form>
	</dialog>;
}

function App() {
	const [at, setAt] = useState<Place>(place());
	const [help, setHelp] = useState(false);
	const [theme, switchTheme] = useTheme();
	const marks = useMarks(at.uid);
	const [name, setName] = useState(""); // of the person, on a cluster
	useEffect(() => { ask<{ name: string }>("me").then((me) => setName(me.name), () => {}); }, []);
	useTick(5);
	useEffect(() => {
		const moved = () => setAt(place());
		addEventListener("popstate", moved);
		const key = (e: KeyboardEvent) => {
			if (!isForPage(e)) return;
			if (e.key === "?") setHelp(true);
			else if (e.key === "u") go("/");
			else if (e.key === "/") document.querySelector<HTMLInputElement>('input[type="search"]')?.focus();
		};
		addEventListener("keyup", key); // at keydown the field would get the key too
		return () => { removeEventListener("popstate", moved); removeEventListener("keyup", key); };
	}, []);
	return <>
		<header>
			<h1><a href="/">Trainyard</a></h1>
			<a href="/" aria-current={at.page === "jobs" ? "page" : undefined}>Jobs</a>
			<a href="/capacity" aria-current={at.page === "capacity" ? "page" : undefined}>Capacity</a>
			<span class="space" />
			{marks.lost && <span class="error" role="status">The server does not answer. {name ? "Load the page again: you may have to sign in." : "Is `trainyard ui` still running?"}</span>}
			{name && <form method="post" action="/signout"><button title={"You are " + name}>Sign out</button></form>}
			<button onClick={switchTheme}>{theme === "dark" ? "Dark" : "Light"}</button>
			<button onClick={() => setHelp(true)} aria-label="Keys">?</button>
		</header>
		{at.page === "job" ? <JobPage key={at.uid} at={at} marks={marks} /> :
			at.page === "compare" ? <ComparePage at={at} mark={marks.jobs} /> :
			at.page === "capacity" ? <CapacityPage mark={marks.jobs} /> :
			<JobsPage at={at} mark={marks.jobs} />}
		{help && <Help close={() => setHelp(false)} />}
	</>;
}

// Links within the dashboard change the page without loading it again.
document.addEventListener("click", (e) => {
	const link = (e.target as Element).closest?.("a");
	if (!link || link.origin !== location.origin || link.hasAttribute("download") || e.button !== 0 || e.ctrlKey || e.metaKey || e.shiftKey) return;
	e.preventDefault();
	go(link.pathname + link.search);
});

render(<App />, document.getElementById("app")!);
