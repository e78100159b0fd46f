// Planets, moons and the probes that went there: a small graph to walk.
import { literal, traverse } from "./gremlin.js";

const PLANETS = { earth: ["moon"], mars: ["phobos", "deimos"], jupiter: ["io", "europa", "ganymede", "callisto"], saturn: ["titan", "enceladus", "rhea", "iapetus"], uranus: ["titania", "oberon", "miranda"], neptune: ["triton"] };
const PROBES = { voyager2: [1977, ["jupiter", "saturn", "uranus", "neptune"]], galileo: [1989, ["jupiter", "io", "europa", "ganymede"]], cassini: [1997, ["jupiter", "saturn", "titan", "enceladus"]], huygens: [1997, ["titan"]], juno: [2011, ["jupiter", "ganymede"]], viking1: [1975, ["mars", "phobos"]], insight: [2018, ["mars"]] };
const title = (id) => id[0].toUpperCase() + id.slice(1);

/** @param {string} db @param {string} coll @param {string} key the name of the partition key */
export async function loadSampleGraph(db, coll, key) {
  const vertex = (label, id, more = "") => `g.V(${literal(id)}).fold().coalesce(unfold(), addV(${literal(label)}).property('id', ${literal(id)}).property(${literal(key)}, ${literal(id)}).property('name', ${literal(title(id))})${more})`;
  const edge = (label, from, to) => `g.V(${literal(from)}).addE(${literal(label)}).to(g.V(${literal(to)}))`;
  const vertices = [vertex("star", "sun"), ...Object.keys(PLANETS).map((id) => vertex("planet", id)), ...Object.values(PLANETS).flat().map((id) => vertex("moon", id)), ...Object.entries(PROBES).map(([id, [year]]) => vertex("probe", id, `.property('launched', ${year})`))];
  const edges = [...Object.entries(PLANETS).flatMap(([id, moons]) => [edge("orbits", id, "sun"), ...moons.map((moon) => edge("orbits", moon, id))]), ...Object.entries(PROBES).flatMap(([id, [, places]]) => /** @type {string[]} */ (places).map((place) => edge("visited", id, place))), edge("carried", "cassini", "huygens")];
  for (const all of [vertices, edges]) await Promise.all(all.map((text) => traverse(db, coll, text, { quiet: true })));
}
