import { h } from "preact";
import htm from "htm";

export { h, render, Fragment, createRef } from "preact";
export { useState, useEffect, useLayoutEffect, useMemo, useRef, useCallback, useId } from "preact/hooks";
export { signal, computed, effect, batch, untracked, useSignal, useComputed, useSignalEffect } from "@preact/signals";
export const html = htm.bind(h);
