// The script of every page. Pages work without it; it sends forms, updates pages, draws charts, and handles keys.
import { doForMany } from "./bulk.js";
import { drawCharts } from "./charts.js";
import { sendForms } from "./forms.js";
import { hearKeys } from "./keyboard.js";
import { keepLive } from "./live.js";
import { switchTheme } from "./theme.js";
import { followTranscript } from "./transcript.js";

switchTheme();
sendForms();
doForMany();
hearKeys();
drawCharts();
keepLive();
followTranscript();
