// Place is what the address of the page says.
export type Place = { uid: string; tab: string; query: URLSearchParams };

export function place(): Place {
	const [, jobs, uid, tab] = location.pathname.split("/");
	return { uid: jobs === "jobs" ? decodeURIComponent(uid ?? "") : "", tab: tab || "overview", query: new URLSearchParams(location.search) };
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

export function ago(time: string): string { return span((Date.now() - Date.parse(time)) / 1000); }
