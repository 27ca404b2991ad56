# Net reductions of a wetland project: per instance, year and stratum, what the baseline would have
# emitted less what the project emits, less a buffer. The totals are written back into the document.

CARBON_TO_CO2 = 44 / 12
N2O_N_TO_N2O = 44 / 28


def factors(sources):
    """The parameters that the registry publishes as a document of its own."""
    for source in sources:
        subject = source["document"]["credentialSubject"][0]
        if subject.get("type") == "registry-parameters":
            return subject["gwp_ch4"], subject["gwp_n2o"], subject["buffer_share"]
    raise LookupError("no document of type registry-parameters among the sources")


def stratum_emissions(stratum, gwp_ch4, gwp_n2o):
    """t CO2e of one stratum in one year; fluxes per hectare, biomass as a change of its carbon."""
    soil = stratum["soil_co2"] + stratum["soil_ch4"] * gwp_ch4 + stratum["soil_n2o_n"] * N2O_N_TO_N2O * gwp_n2o
    biomass = stratum.get("biomass_carbon_change", 0) * CARBON_TO_CO2
    return stratum["area_ha"] * (soil - biomass)


def yearly_emissions(scenario, gwp_ch4, gwp_n2o):
    return {
        year["year"]: sum(stratum_emissions(stratum, gwp_ch4, gwp_n2o) for stratum in year["annual_stratum_parameters"])
        for year in scenario["yearly"]
    }


def calculate(subject, sources):
    gwp_ch4, gwp_n2o, buffer_share = factors(sources)
    total = 0.0
    for instance in subject["project_data_per_instance"]:
        project_instance = instance["project_instance"]
        baseline = yearly_emissions(project_instance["baseline"], gwp_ch4, gwp_n2o)
        project = yearly_emissions(project_instance["project"], gwp_ch4, gwp_n2o)
        years = []
        for year in sorted(baseline):
            reduction = baseline[year] - project[year]
            buffer = max(reduction, 0) * buffer_share
            years.append({"year": year, "net_reduction": round(reduction, 3), "buffer": round(buffer, 3)})
            total += reduction - buffer
        project_instance["net_reductions"] = years
        debug({"instance": instance["name"], "years": len(years)})
    subject["units"] = int(total)


document = documents[0]
calculate(document["document"]["credentialSubject"][0], sources)
print("calculated for", user.get("did", "nobody"))
done(document)
