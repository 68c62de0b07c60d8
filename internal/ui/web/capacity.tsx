// What the nodes of the cluster have, who holds it, and who waits.
import { h } from "preact";
import { useEffect, useState } from "preact/hooks";
import { bytes, short } from "./place";
import { useAnswer } from "./plots";

type Amount = { cores: number; memory: number; gpus: number };
type Holder = { namespace: string; job: string; uid: string; pods: number; wants: Amount; message?: string };
type Node = { name: string; state: string; total: Amount; held: Amount; holders: Holder[] };

const kinds: [keyof Amount, string, (n: number) => string][] = [["cores", "Processors", short], ["memory", "Memory", bytes], ["gpus", "GPUs", short]];

export function CapacityPage({ mark }: { mark?: string }) {
	const [tick, setTick] = useState(0);
	useEffect(() => { // pods of no job come and go unnoticed
		const timer = setInterval(() => { if (!document.hidden) setTick((n) => n + 1); }, 5000);
		return () => clearInterval(timer);
	}, []);
	const [now, error] = useAnswer<{ running: boolean; nodes: Node[]; waiting: Holder[] }>("capacity", mark + " " + tick);
	if (error) return <main><div class="error" role="alert">{error}</div></main>;
	if (!now) return <main><div class="dim">…</div></main>;
	if (!now.running) return <main><div class="notice">The local cluster is not running. `trainyard up` starts it.</div></main>;
	return <main><div class="tab">
		<table id="nodes">
			<thead><tr><th>Node</th><th>State</th>{kinds.map(([, name]) => <th>{name}, held of all</th>)}</tr></thead>
			<tbody>{now.nodes.map((n) => <tr><td>{n.name}</td><td>{n.state}</td>{kinds.map(([key, name, text]) => <td>
				{n.total[key] > 0 ? <span><meter aria-label={`${name} of ${n.name}`} max={n.total[key]} value={n.held[key]} /> {text(n.held[key])} of {text(n.total[key])}, {text(Math.max(0, n.total[key] - n.held[key]))} free</span> : "none"}
			</td>)}</tr>)}</tbody>
		</table>
		<Holders title="Who waits for a node" holders={now.waiting.map((who) => ({ ...who, node: "" }))} />
		<Holders title="Who holds what" holders={now.nodes.flatMap((n) => n.holders.map((who) => ({ ...who, node: n.name })))} />
	</div></main>;
}

function Holders({ title, holders }: { title: string; holders: (Holder & { node: string })[] }) {
	if (holders.length === 0) return null;
	return <section>
		<h3>{title}</h3>
		<table>
			<thead><tr><th>Job</th><th>Node</th><th>Pods</th>{kinds.map(([, name]) => <th>{name}</th>)}<th /></tr></thead>
			<tbody>{holders.map((who) => <tr>
				<td>{who.job ? <a href={"/jobs/" + who.uid}>{who.namespace === "default" ? "" : who.namespace + "/"}{who.job}</a> : <span class="dim">other pods of {who.namespace}</span>}</td>
				<td>{who.node}</td><td>{who.pods}</td>{kinds.map(([key, , text]) => <td>{text(who.wants[key])}</td>)}<td class="dim">{who.message}</td>
			</tr>)}</tbody>
		</table>
	</section>;
}
