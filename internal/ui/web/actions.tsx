// What a person can do to a job. The server says which of it the job allows now.
import { Fragment, h } from "preact";
import { useState } from "preact/hooks";
import type { Job } from "./job";
import { go, order } from "./place";

type Done = { said: string; uid?: string };

const words: Record<string, string> = { suspend: "Suspend", resume: "Resume", scale: "Scale…", again: "Run again", delete: "Delete…" };

export function Actions({ job }: { job: Job }) {
	const [asks, setAsks] = useState(""); // the action whose dialog is open
	const [busy, setBusy] = useState(false);
	const [said, setSaid] = useState("");
	const [error, setError] = useState("");
	const act = (verb: string, query = "") => {
		setAsks("");
		setBusy(true);
		setSaid("");
		setError("");
		order<Done>(`jobs/${encodeURIComponent(job.job.uid)}/${verb}${query}`).then((d) => {
			setSaid(d.said);
			if (d.uid) go("/jobs/" + d.uid);
		}).catch((e) => setError(String(e.message))).finally(() => setBusy(false));
	};
	const press = (verb: string) => (verb === "scale" || verb === "delete" ? setAsks(verb) : act(verb));
	return <>
		{job.actions.map((verb) => <button class="action" disabled={busy} onClick={() => press(verb)}>{words[verb]}</button>)}
		{said && <span role="status">{said}</span>}
		{error && <span class="error" role="alert">{error}</span>}
		{asks === "scale" && <Scale job={job} act={act} close={() => setAsks("")} />}
		{asks === "delete" && <Ask close={() => setAsks("")} word="Delete" act={() => act("delete")}>
			<p>Delete {job.job.name} with its pods? What was recorded stays.</p>
		</Ask>}
	</>;
}

function Scale(p: { job: Job; act: (verb: string, query: string) => void; close: () => void }) {
	const [role, setRole] = useState(p.job.roles[0].name);
	const [n, setN] = useState(String(p.job.roles[0].replicas));
	const choose = (name: string) => {
		setRole(name);
		setN(String(p.job.roles.find((r) => r.name === name)?.replicas ?? 1));
	};
	return <Ask close={p.close} word="Scale" act={() => p.act("scale", `?role=${encodeURIComponent(role)}&replicas=${encodeURIComponent(n)}`)}>
		<p>
			<label>Role <select value={role} onChange={(e) => choose(e.currentTarget.value)}>{p.job.roles.map((r) => <option>{r.name}</option>)}</select></label>{" "}
			<label>Replicas <input type="number" min="1" value={n} onInput={(e) => setN(e.currentTarget.value)} /></label>
		</p>
		<p class="dim">An elastic job adds or removes replicas. Any other job starts again as another attempt, which is not charged as a retry.</p>
	</Ask>;
}

// Ask is a question with one answer that does something.
function Ask(p: { close: () => void; word: string; act: () => void; children?: unknown }) {
	return <dialog ref={(d) => { if (d && !d.open) d.showModal(); }} onClose={p.close}>
		{p.children}
		<div class="bar"><button class="confirm" onClick={p.act}>{p.word}</button><button onClick={p.close}>Cancel</button></div>
	</dialog>;
}
