`define TILES 12
