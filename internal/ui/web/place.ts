// Place is what the address of the page says: the page of all jobs, of one job, of two, or of the nodes.
export type Place = { page: "jobs" | "job" | "compare" | "capacity"; uid: string; tab: string; query: URLSearchParams };

export function place(): Place {
	const [, page, uid, tab] = location.pathname.split("/"), query = new URLSearchParams(location.search);
	if (page === "compare" || page === "capacity") return { page, uid: "", tab: "", query };
	if (page === "jobs" && uid) return { page: "job", uid: decodeURIComponent(uid), tab: tab || "overview", query };
	return { page: "jobs", uid: "", tab: "", query };
}

// go shows another place. With replace, the button Back leads past the present one.
export function go(address: string, replace = false) {
	if (replace) history.replaceState(null, "", address);
	else history.pushState(null, "", address);
	dispatchEvent(new PopStateEvent("popstate"));
}

// withQuery is the present address with other values in its query; an empty value is left out.
export function withQuery(changes: Record<string, string>): string {
	const query = new URLSearchParams(location.search);
	for (const [key, value] of Object.entries(changes)) {
		if (value) query.set(key, value);
		else query.delete(key);
	}
	const text = query.toString();
	return location.pathname + (text ? "?" + text : "");
}

// ask reads from the server. Its errors are sentences.
export async function ask<T>(path: string, signal?: AbortSignal): Promise<T> {
	const response = await fetch("/api/v1/" + path, { signal });
	if (!response.ok) throw new Error((await response.text()).trim());
	return response.json();
}

// order lets the server change something.
export async function order<T>(path: string): Promise<T> {
	const response = await fetch("/api/v1/" + path, { method: "POST" });
	if (!response.ok) throw new Error((await response.text()).trim());
	return response.json();
}

// span is a length of time in at most two units: 45s, 3m20s, 2h5m, 4d3h.
export function span(seconds: number): string {
	const s = Math.max(0, Math.round(seconds));
	const two = (large: number, a: string, small: number, b: string) => {
		const rest = Math.floor((s % large) / small);
		return Math.floor(s / large) + a + (rest ? rest + b : "");
	};
	if (s < 60) return s + "s";
	if (s < 3600) return two(60, "m", 1, "s");
	if (s < 48 * 3600) return two(3600, "h", 60, "m");
	return two(86400, "d", 3600, "h");
}

// duration is how long a job ran, or runs until now, in seconds.
export function duration(job: { seconds: number; started?: string; ended?: string; deleted?: string }, running: boolean): number {
	return running && job.started && !job.ended && !job.deleted ? Math.max(0, (Date.now() - Date.parse(job.started)) / 1000) : job.seconds;
}

// isForPage reports whether a key is meant for the page: not with Ctrl, not in a field for text or a dialog.
export function isForPage(e: KeyboardEvent): boolean {
	const at = e.target, field = at instanceof HTMLInputElement ? at.type !== "checkbox" : at instanceof HTMLSelectElement;
	return !field && !e.ctrlKey && !e.metaKey && !e.altKey && !document.querySelector("dialog");
}

export function ago(time: string): string { return span((Date.now() - Date.parse(time)) / 1000); }

// bytes is a number of bytes for people.
export function bytes(n: number): string {
	for (const [unit, size] of [["TiB", 2 ** 40], ["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]] as const) if (n >= size) return short(n / size) + " " + unit;
	return short(n) + " B";
}

// short is a number with three digits that count.
export function short(n: number): string {
	if (n === 0 || (Math.abs(n) >= 0.001 && Math.abs(n) < 1e6)) return String(Number(n.toPrecision(Math.abs(n) >= 1000 ? 6 : 3)));
	return n.toExponential(1).replace("e+", "e");
}
