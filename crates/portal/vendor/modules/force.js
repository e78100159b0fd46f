export { forceSimulation, forceLink, forceManyBody, forceCollide, forceX, forceY } from "d3-force";
