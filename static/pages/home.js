// Home: my jobs, live; the clusters' pulse every half minute.

import { refresh } from "./refresh.js";
import { watchJobs } from "./watch.js";

const PULSE_MS = 30_000;
const me = document.getElementById("home").dataset.me;

watchJobs((row) => row.owner === me);
setInterval(() => document.hidden || refresh(), PULSE_MS);
