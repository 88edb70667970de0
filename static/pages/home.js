// Home: my jobs and the clusters' pulse.

import { watchJobs } from "./watch.js";

watchJobs();
